# find_package(unisono): the C libraries as targets.
#
#   unisono::unisono          in memory that the program maps itself
#   unisono::unisono_static   the same, without a shared library
#   unisono::posix            between processes that `unisono run` starts
#
# And places: unisono_PROGRAM, and, where they are installed, the libraries to preload: unisono_PRELOAD_OPENMPI, unisono_PRELOAD_MPICH,
# unisono_PRELOAD_ABI, unisono_PRELOAD_HEAP.
get_filename_component(_unisono_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

function(_unisono_library target kind file)
  if(NOT TARGET ${target})
    add_library(${target} ${kind} IMPORTED)
    set_target_properties(${target} PROPERTIES
      IMPORTED_LOCATION "${_unisono_prefix}/lib/${file}"
      INTERFACE_INCLUDE_DIRECTORIES "${_unisono_prefix}/include")
  endif()
endfunction()

_unisono_library(unisono::unisono SHARED libunisono.so)
_unisono_library(unisono::posix SHARED libunisono_posix.so)
_unisono_library(unisono::unisono_static STATIC libunisono.a)
set_target_properties(unisono::unisono_static PROPERTIES INTERFACE_LINK_LIBRARIES "util;rt;pthread;m;dl")

set(unisono_PROGRAM "${_unisono_prefix}/bin/unisono")
foreach(_unisono_name openmpi mpich abi heap)
  string(TOUPPER "${_unisono_name}" _unisono_upper)
  if(EXISTS "${_unisono_prefix}/lib/libunisono_${_unisono_name}.so")
    set(unisono_PRELOAD_${_unisono_upper} "${_unisono_prefix}/lib/libunisono_${_unisono_name}.so")
  endif()
endforeach()
