! A window of memory that all ranks share, made in Fortran: what lies in it is lent (run.sh looks at the statistics).
program window
   use, intrinsic :: iso_c_binding
#ifdef F08
   use mpi_f08
   implicit none
   type(MPI_Win) :: win
#else
   use mpi
   implicit none
   integer :: win
#endif
   integer, parameter :: words = 32768
   integer(kind=MPI_ADDRESS_KIND) :: bytes
   type(c_ptr) :: base
   integer, pointer :: mine(:)
   integer :: rank, ranks, error, root, round, passed, failed
   integer :: sums(2), all(2)

   call MPI_Init(error)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
   bytes = 4 * words
   call MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, error)
   call c_f_pointer(base, mine, [words])
   passed = 0
   failed = 0
   do round = 1, 6
      root = mod(round, ranks)
      mine = 1000 * rank + round
      call MPI_Bcast(mine, words, MPI_INTEGER, root, MPI_COMM_WORLD, error)
      if (all_are(1000 * root + round)) then
         passed = passed + 1
      else
         failed = failed + 1
      end if
   end do
   call MPI_Win_free(win, error)
   sums = [passed, failed]
   call MPI_Reduce(sums, all, 2, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, error)
   if (rank == 0) write (*, '(I0, A, I0, A)') all(1), ' passed, ', all(2), ' failed'
   call MPI_Finalize(error)

contains

   logical function all_are(number)
      integer, intent(in) :: number
      all_are = count(mine == number) == words
   end function
end program
