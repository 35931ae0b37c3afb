! Persistent collectives from Fortran, started by each rank in another order; run.sh looks at the statistics. Open MPI 4 has them in
! modules of its own, by other names (-DEXTENSION).
#ifdef EXTENSION
#define INIT(name) MPIX_/**/name/**/_init
#else
#define INIT(name) MPI_/**/name/**/_init
#endif
program persistent
#ifdef F08
   use mpi_f08
#ifdef EXTENSION
   use mpi_f08_ext
#endif
   implicit none
   type(MPI_Request) :: made(4), started(4)
   type(MPI_Status) :: status, statuses(4)
#else
   use mpi
#ifdef EXTENSION
   use mpi_ext
#endif
   implicit none
   integer :: made(4), started(4)
   integer :: status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 4)
#endif
   integer, parameter :: words = 500
   integer :: rank, ranks, error, round, i, index, passed, failed
   integer :: sent(words), copied(words), summed(words), counts(2), all(2)
   integer, allocatable :: gathered(:)
   logical :: done

   call MPI_Init(error)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
   allocate (gathered(words*ranks))
   passed = 0
   failed = 0
   call INIT(Barrier)(MPI_COMM_WORLD, MPI_INFO_NULL, made(1), error)
   call INIT(Bcast)(copied, words, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, MPI_INFO_NULL, made(2), error)
   call INIT(Allreduce)(sent, summed, words, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, made(3), error)
   call INIT(Allgather)(sent, words, MPI_INTEGER, gathered, words, MPI_INTEGER, MPI_COMM_WORLD, MPI_INFO_NULL, made(4), error)
   do round = 1, 9
      sent = 1000*rank + round
      copied = sent
      started = [(made(mod(i + rank + round, 4) + 1), i=1, 4)]
      if (mod(round, 2) == 0) then
         call MPI_Startall(4, started, error)
      else
         do i = 1, 4
            call MPI_Start(started(i), error)
         end do
      end if
      select case (mod(round, 3))
      case (0)
         call MPI_Waitall(4, started, statuses, error)
      case (1)
         do i = 1, 4
            call MPI_Waitany(4, started, index, status, error)
         end do
      case default
         do i = 4, 1, -1
            done = .false.
            do while (.not. done)
               call MPI_Test(started(i), done, status, error)
            end do
         end do
      end select
      call count_it(all_are(copied, 1000*(ranks - 1) + round))
      call count_it(all_are(summed, 1000*ranks*(ranks - 1)/2 + round*ranks))
      do i = 1, ranks
         call count_it(all_are(gathered(words*(i - 1) + 1:words*i), 1000*(i - 1) + round))
      end do
   end do
   do i = 1, 4
      call MPI_Request_free(made(i), error)
      call count_it(made(i) == MPI_REQUEST_NULL)
   end do
   counts = [passed, failed]
   call MPI_Reduce(counts, all, 2, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, error)
   if (rank == 0) write (*, '(I0, A, I0, A)') all(1), ' passed, ', all(2), ' failed'
   call MPI_Finalize(error)

contains

   logical function all_are(values, number)
      integer, intent(in) :: values(:), number
      all_are = count(values == number) == size(values)
   end function

   subroutine count_it(right)
      logical, intent(in) :: right
      if (right) then
         passed = passed + 1
      else
         failed = failed + 1
      end if
   end subroutine
end program
