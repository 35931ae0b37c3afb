! A Fortran program's allocatable arrays are lent where libunisono_heap.so is preloaded: they are allocated, grown, moved and
! freed, and collectives read them in between. Rank 0 prints how many checks passed.
program owned
  use mpi
  implicit none
  integer :: rank, ranks, code, round, n, sums(2), all(2)
  double precision, allocatable :: mine(:), summed(:), table(:, :), grown(:)
  integer :: passed = 0, failed = 0

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)

  do round = 1, 6
    n = 5000 * round
    allocate (mine(n), summed(n))
    mine = rank + round
    summed = -1
    call MPI_Allreduce(mine, summed, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, code)
    call check(all_are(summed, ranks * (ranks - 1) / 2d0 + ranks * round))
    ! A longer array takes the place of this one.
    allocate (grown(2 * n))
    grown(:n) = mine
    grown(n + 1:) = rank * 10
    call move_alloc(grown, mine)
    call MPI_Bcast(mine, 2 * n, MPI_DOUBLE_PRECISION, ranks - 1, MPI_COMM_WORLD, code)
    call check(all_are(mine(:n), dble(ranks - 1 + round)))
    call check(all_are(mine(n + 1:), (ranks - 1) * 10d0))
    deallocate (mine, summed)
  end do

  ! Automatic reallocation, and a table of a column for each rank.
  mine = [(dble(rank), n = 1, 20000)]
  allocate (table(20000, 0:ranks - 1))
  table = -1
  call MPI_Allgather(mine, 20000, MPI_DOUBLE_PRECISION, table, 20000, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, code)
  do n = 0, ranks - 1
    call check(all_are(table(:, n), dble(n)))
  end do

  sums = [passed, failed]
  call MPI_Reduce(sums, all, 2, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, code)
  if (rank == 0) print '(A, I0, A, I0, A)', 'owned: ', all(1), ' passed, ', all(2), ' failed'
  call MPI_Finalize(code)
  if (failed > 0) error stop 1

contains

  logical function all_are(values, expected)
    double precision, intent(in) :: values(:), expected
    all_are = count(values == expected) == size(values)
  end function

  subroutine check(holds)
    logical, intent(in) :: holds
    if (holds) then
      passed = passed + 1
    else
      failed = failed + 1
    end if
  end subroutine
end program
