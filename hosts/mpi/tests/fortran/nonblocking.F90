! Every nonblocking collective that the preload takes over, from Fortran, with values, and requests among those of messages. One source
! for two bindings: `use mpi`, and with -DF08 `use mpi_f08`. Ends with "N passed, N failed".
#ifdef F08
#define REQUEST type(MPI_Request)
#define DATATYPE type(MPI_Datatype)
#define STATUS type(MPI_Status)
#define ERROR
#else
#define REQUEST integer
#define DATATYPE integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#define ERROR , ierror
#endif

program nonblocking
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
  integer, parameter :: most = 16
  integer :: ierror, rank, ranks, i, root, turn, passed = 0, failed = 0
  integer, asynchronous :: mine(most), all(most), one(most), sent(most), token(2)
  integer :: counts(most), starts(most), bytes(most), sums(2), totals(2)
  logical :: done
  REQUEST :: requests(3)
  DATATYPE :: types(most)

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank ERROR)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks ERROR)
  call MPI_Barrier(MPI_COMM_WORLD ERROR)
  do i = 1, most
    counts(i) = 1
    starts(i) = ranks - i
    bytes(i) = 4 * (i - 1)
    types(i) = MPI_INTEGER
  end do
  do turn = 0, 3
    root = mod(turn, ranks)

    call begin()
    call MPI_Ibarrier(MPI_COMM_WORLD, requests(1) ERROR)
    call complete()

    call begin()
    if (rank == root) one(1:2) = [7, 8 + turn]
    call MPI_Ibcast(one, 2, MPI_INTEGER, root, MPI_COMM_WORLD, requests(1) ERROR)
    call complete()
    call expect(all(:2), one(:2), [7, 8 + turn], 2)

    call begin()
    call MPI_Ireduce(mine, one, 2, MPI_INTEGER, MPI_SUM, root, MPI_COMM_WORLD, requests(1) ERROR)
    call complete()
    if (rank == root) call expect(all(:2), one(:2), total(2), 2)

    call begin()
    call MPI_Iallreduce(mine, one, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1) ERROR)
    call complete()
    call expect(all(:2), one(:2), total(2), 2)

    call begin()
    one = mine
    call MPI_Iallreduce(MPI_IN_PLACE, one, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1) ERROR)
    call complete()
    call expect(all(:2), one(:2), total(2), 2)

    call begin()
    call MPI_Igather(mine, 1, MPI_INTEGER, all, 1, MPI_INTEGER, root, MPI_COMM_WORLD, requests(1) ERROR)
    call complete()
    if (rank == root) call expect(mine, all, [(i, i = 1, ranks)], ranks)

    call begin()
    call MPI_Igatherv(mine, 1, MPI_INTEGER, all, counts, starts, MPI_INTEGER, root, MPI_COMM_WORLD, requests(1) ERROR)
    call complete()
    if (rank == root) call expect(mine, all, [(ranks + 1 - i, i = 1, ranks)], ranks)

    call begin()
    call MPI_Iscatter(sent, 1, MPI_INTEGER, one, 1, MPI_INTEGER, root, MPI_COMM_WORLD, requests(1) ERROR)
    call complete()
    call expect(mine, one, [1000 * (root + 1) + rank + 1], 1)

    call begin()
    call MPI_Iscatterv(sent, counts, starts, MPI_INTEGER, one, 1, MPI_INTEGER, root, MPI_COMM_WORLD, requests(1) ERROR)
    call complete()
    call expect(mine, one, [1000 * (root + 1) + ranks - rank], 1)

    call begin()
    call MPI_Iallgather(mine, 1, MPI_INTEGER, all, 1, MPI_INTEGER, MPI_COMM_WORLD, requests(1) ERROR)
    call complete()
    call expect(mine, all, [(i, i = 1, ranks)], ranks)

    call begin()
    call MPI_Iallgatherv(mine, 1, MPI_INTEGER, all, counts, starts, MPI_INTEGER, MPI_COMM_WORLD, requests(1) ERROR)
    call complete()
    call expect(mine, all, [(ranks + 1 - i, i = 1, ranks)], ranks)

    call begin()
    call MPI_Ialltoall(sent, 1, MPI_INTEGER, all, 1, MPI_INTEGER, MPI_COMM_WORLD, requests(1) ERROR)
    call complete()
    call expect(mine, all, [(1000 * i + rank + 1, i = 1, ranks)], ranks)

    call begin()
    call MPI_Ialltoallv(sent, counts, starts, MPI_INTEGER, all, counts, starts, MPI_INTEGER, MPI_COMM_WORLD, requests(1) ERROR)
    call complete()
    call expect(mine, all, [(1000 * (ranks + 1 - i) + ranks - rank, i = 1, ranks)], ranks)

    call begin()
    call MPI_Ialltoallw(sent, counts, bytes, types, all, counts, bytes, types, MPI_COMM_WORLD, requests(1) ERROR)
    call complete()
    call expect(mine, all, [(1000 * i + rank + 1, i = 1, ranks)], ranks)

    call begin()
    call MPI_Ireduce_scatter(sent, one, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1) ERROR)
    call complete()
    call expect(mine, one, [500 * ranks * (ranks + 1) + ranks * (rank + 1)], 1)

    call begin()
    call MPI_Ireduce_scatter_block(sent, one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1) ERROR)
    call complete()
    call expect(mine, one, [500 * ranks * (ranks + 1) + ranks * (rank + 1)], 1)

    call begin()
    call MPI_Iscan(mine, one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1) ERROR)
    call complete()
    call expect(mine, one, [(rank + 1) * (rank + 2) / 2], 1)

    call begin()
    call MPI_Iexscan(mine, one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1) ERROR)
    call complete()
    if (rank > 0) call expect(mine, one, [rank * (rank + 1) / 2], 1)
  end do

  sums = [passed, failed]
  call MPI_Reduce(sums, totals, 2, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD ERROR)
  if (rank == 0) print '(i0, a, i0, a)', totals(1), ' passed, ', totals(2), ' failed'
  call MPI_Finalize(ierror)

contains

  ! What this rank sends, and nothing yet that is received.
  subroutine begin()
    integer :: k
    mine = [(rank + 1 + 100 * (k - 1), k = 1, most)]
    sent = [(1000 * (rank + 1) + k, k = 1, most)]
    all = -1
    one = -1
  end subroutine

  function total(length) result(of)
    integer, intent(in) :: length
    integer :: of(length), k
    of = [(ranks * (ranks + 1) / 2 + 100 * ranks * (k - 1), k = 1, length)]
  end function

  ! By turns: a wait, tests, and a wait beside a message's requests. (In Open MPI 4.1 no request is complete if its status is ignored.)
  subroutine complete()
    STATUS :: told
    integer, save :: calls = 0
    calls = calls + 1
    if (mod(calls, 3) == 0) then
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE ERROR)
    else if (mod(calls, 3) == 1) then
      done = .false.
      do while (.not. done)
        call MPI_Test(requests(1), done, MPI_STATUS_IGNORE ERROR)
      end do
    else
      done = .false.
      do while (.not. done)
        call MPI_Request_get_status(requests(1), done, told ERROR)
      end do
      token = [rank, -1]
      call MPI_Isend(token(1), 1, MPI_INTEGER, mod(rank + 1, ranks), 3, MPI_COMM_WORLD, requests(2) ERROR)
      call MPI_Irecv(token(2), 1, MPI_INTEGER, mod(rank + ranks - 1, ranks), 3, MPI_COMM_WORLD, requests(3) ERROR)
      call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE ERROR)
      call expect(token, token(2:), [mod(rank + ranks - 1, ranks)], 1)
    end if
  end subroutine

  ! The first argument keeps its memory until the call is complete.
  subroutine expect(kept, got, wanted, length)
    integer, intent(in) :: kept(*), got(*), wanted(*), length
    if (all_equal(got, wanted, length)) then
      passed = passed + 1
    else
      failed = failed + 1
      print *, 'rank', rank, 'turn', turn, 'got', got(1:length), 'not', wanted(1:length), 'of', kept(1)
    end if
  end subroutine

  logical function all_equal(got, wanted, length)
    integer, intent(in) :: length, got(length), wanted(length)
    all_equal = count(got /= wanted) == 0
  end function
end program
