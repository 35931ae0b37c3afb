"""Spack recipe. `spack repo add hosts/packaging/spack`, then `spack install unisono ^openmpi` (Spack 0.23, 1.x)."""

from spack.package import *


class Unisono(Package):
    """Collective operations between the processes of a machine, as libraries and to be preloaded under an MPI."""

    homepage = "https://example.org/unisono"
    git = "https://example.org/unisono.git"

    license("Apache-2.0 OR MIT")

    version("main", branch="main")

    variant("mpi", default=True, description="The libraries to be preloaded: under the MPI, and under those with the standard's ABI")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("hwloc")
    depends_on("mpi", when="+mpi")

    def install(self, spec, prefix):
        compilers = f"{spec['mpi'].mpicc} abi" if "+mpi" in spec else ""
        make("install", f"PREFIX={prefix}", f"MPICC={compilers}")
