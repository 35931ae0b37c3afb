! Every collective that the preload takes over, from Fortran, with values, MPI_IN_PLACE and MPI_BOTTOM. One source for
! two bindings: `use mpi`, and with -DF08 `use mpi_f08`. Ends with "N passed, N failed".
#ifdef F08
#define COMM type(MPI_Comm)
#define DATATYPE type(MPI_Datatype)
#define OPERATION type(MPI_Op)
#define STATUS type(MPI_Status)
#define ERROR
#else
#define COMM integer
#define DATATYPE integer
#define OPERATION integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#define ERROR , ierror
#endif

module decimal
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
  integer :: callbacks = 0
  COMM :: dying

contains

  ! Puts the digits of the left number before the right one's: doesn't commute.
#ifdef F08
  subroutine digits(in, inout, len, type)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: in, inout
    integer :: len
    type(MPI_Datatype) :: type
    integer, pointer :: left(:), right(:)
    if (type /= MPI_INTEGER) call MPI_Abort(MPI_COMM_WORLD, 2)
    call c_f_pointer(in, left, [len])
    call c_f_pointer(inout, right, [len])
    right = right + left * 10 ** length(right)
  end subroutine
#else
  subroutine digits(left, right, len, type)
    integer, intent(in) :: len, type
    integer, intent(in) :: left(len)
    integer, intent(inout) :: right(len)
    integer :: ierror
    if (type /= MPI_INTEGER) call MPI_Abort(MPI_COMM_WORLD, 2, ierror)
    right = right + left * 10 ** length(right)
  end subroutine
#endif

  ! A delete callback that sums on the communicator that goes, which Open MPI 4.1 calls by a wrong handle.
  subroutine gone(c, key, value, extra, ierror)
    COMM :: c
    integer :: key, ierror, ranks, sum
    integer(kind=MPI_ADDRESS_KIND) :: value, extra
    call MPI_Comm_size(dying, ranks ERROR)
    call MPI_Allreduce(1, sum, 1, MPI_INTEGER, MPI_SUM, dying ERROR)
    if (sum == ranks) callbacks = callbacks + 1
    ierror = MPI_SUCCESS
  end subroutine

  elemental integer function length(digits)
    integer, intent(in) :: digits
    length = int(log10(dble(digits)) + 1d-9) + 1
  end function
end module

program collectives
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  use decimal, only: digits, gone, callbacks, dying
  implicit none
  integer, parameter :: n = 1000
  integer :: ierror, rank, ranks, passed = 0, failed = 0, root, level
  COMM :: world, half

#ifdef F08
  call MPI_Init_thread(MPI_THREAD_FUNNELED, level)
#else
  call MPI_Init(ierror)
  level = MPI_THREAD_FUNNELED
#endif
  call MPI_Comm_dup(MPI_COMM_WORLD, world ERROR)
  call MPI_Comm_size(world, ranks ERROR)
  call MPI_Comm_rank(world, rank ERROR)
  call expect(level >= MPI_THREAD_FUNNELED, "thread level")
  call all_of(world)
  call MPI_Comm_split(world, rank / 2, -rank, half ERROR)
  call all_of(half)
  call MPI_Comm_free(half ERROR)
  call all_of(world)
  call deletions(world)
  call bad_arguments(world)
  call MPI_Comm_free(world ERROR)
  call report
  call MPI_Finalize(ierror)

contains

  subroutine expect(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (good) then
       passed = passed + 1
    else
       failed = failed + 1
       print '(a, i0, 2a)', "rank ", rank, ": wrong: ", what
    end if
  end subroutine

  ! Sums by messages: the collectives are what is tested.
  subroutine report
    integer :: sums(2), other(2), r
    STATUS :: status
    call MPI_Comm_rank(MPI_COMM_WORLD, rank ERROR)
    sums = [passed, failed]
    if (rank /= 0) call MPI_Send(sums, 2, MPI_INTEGER, 0, 1, MPI_COMM_WORLD ERROR)
    if (rank /= 0) return
    do r = 1, ranks - 1
       call MPI_Recv(other, 2, MPI_INTEGER, r, 1, MPI_COMM_WORLD, status ERROR)
       sums = sums + other
    end do
    print '(i0, a, i0, a)', sums(1), " passed, ", sums(2), " failed"
    if (sums(2) > 0) call MPI_Abort(MPI_COMM_WORLD, 1 ERROR)
  end subroutine

  ! What rank r has for rank s at place i.
  elemental integer function value(r, s, i)
    integer, intent(in) :: r, s, i
    value = 1000000 * r + 10000 * s + i
  end function

  ! count values of r for s.
  pure function values(r, s, count)
    integer, intent(in) :: r, s, count
    integer :: values(count), i
    values = value(r, s, [(i, i = 1, count)])
  end function

  ! The sum of values(r, 0, count) over all ranks.
  pure function sums(p, count)
    integer, intent(in) :: p, count
    integer :: sums(count), r
    sums = 0
    do r = 0, p - 1
       sums = sums + values(r, 0, count)
    end do
  end function

  subroutine all_of(c)
    COMM, intent(in) :: c
    integer :: me, p
    call MPI_Comm_rank(c, me ERROR)
    call MPI_Comm_size(c, p ERROR)
    call MPI_Barrier(c ERROR)
    do root = 0, p - 1
       call broadcasts(c, me)
       call reductions(c, me, p)
       call rooted_blocks(c, me, p)
    end do
    call operations(c, me, p)
    call blocks_of_all(c, me, p)
    call MPI_Barrier(c ERROR)
  end subroutine

  subroutine broadcasts(c, me)
    COMM, intent(in) :: c
    integer, intent(in) :: me
    integer :: buffer(n), matrix(10, 20)
    DATATYPE :: row, absolute
    double precision :: numbers(50)

    buffer = merge(values(root, 0, n), -1, me == root)
    call MPI_Bcast(buffer, n, MPI_INTEGER, root, c ERROR)
    call expect(all(buffer == values(root, 0, n)), "bcast")

    ! A row: its elements are 10 apart, what lies between is not touched.
    matrix = me
    if (me == root) matrix(3, :) = values(root, 1, 20)
    call MPI_Type_vector(20, 1, 10, MPI_INTEGER, row ERROR)
    call MPI_Type_commit(row ERROR)
    call MPI_Bcast(matrix(3, 1), 1, row, root, c ERROR)
    call MPI_Type_free(row ERROR)
    call expect(all(matrix(3, :) == values(root, 1, 20)), "bcast of a row")
    call expect(all(matrix(:2, :) == me) .and. all(matrix(4:, :) == me), "bcast of a row: holes")

    ! A section: the compiler or the binding makes it one.
    matrix = me
    if (me == root) matrix(5, :) = values(root, 2, 20)
    call MPI_Bcast(matrix(5, :), 20, MPI_INTEGER, root, c ERROR)
    call expect(all(matrix(5, :) == values(root, 2, 20)), "bcast of a section")

    ! Two arrays at once, by their addresses.
    buffer = merge(values(root, 3, n), -1, me == root)
    numbers = merge(dble(values(root, 4, 50)), -1d0, me == root)
    absolute = both(buffer, numbers)
    call MPI_Bcast(MPI_BOTTOM, 1, absolute, root, c ERROR)
    call MPI_Type_free(absolute ERROR)
    call expect(all(buffer == values(root, 3, n)), "bcast from MPI_BOTTOM, integers")
    call expect(all(numbers == dble(values(root, 4, 50))), "bcast from MPI_BOTTOM, numbers")
  end subroutine

  function both(integers, numbers) result(type)
    integer, asynchronous :: integers(:)
    double precision, asynchronous :: numbers(:)
    integer(MPI_ADDRESS_KIND) :: at(2)
    DATATYPE :: type
    call MPI_Get_address(integers(1), at(1) ERROR)
    call MPI_Get_address(numbers(1), at(2) ERROR)
    call MPI_Type_create_struct(2, [size(integers), size(numbers)], at, [MPI_INTEGER, MPI_DOUBLE_PRECISION], type ERROR)
    call MPI_Type_commit(type ERROR)
  end function

  ! count integers that lie at the address of `first`.
  function there(first, count) result(type)
    integer, asynchronous :: first(*)
    integer, intent(in) :: count
    integer(MPI_ADDRESS_KIND) :: at(1)
    DATATYPE :: type
    call MPI_Get_address(first(1), at(1) ERROR)
    call MPI_Type_create_hindexed(1, [count], at, MPI_INTEGER, type ERROR)
    call MPI_Type_commit(type ERROR)
  end function

  subroutine reductions(c, me, p)
    COMM, intent(in) :: c
    integer, intent(in) :: me, p
    integer, parameter :: few = 10
    integer :: send(n), receive(n)

    send = values(me, 0, n)
    receive = -1
    call MPI_Reduce(send, receive, n, MPI_INTEGER, MPI_SUM, root, c ERROR)
    call expect(all(receive == merge(sums(p, n), -1, me == root)), "reduce")
    call expect(all(send == values(me, 0, n)), "reduce: operand")

    ! MPICH 4.0.2 crashes here with 1000 elements and a root other than 0.
    receive = send
    if (me == root) then
       call MPI_Reduce(MPI_IN_PLACE, receive, few, MPI_INTEGER, MPI_SUM, root, c ERROR)
    else
       call MPI_Reduce(send, receive, few, MPI_INTEGER, MPI_SUM, root, c ERROR)
    end if
    call expect(all(receive(: few) == merge(sums(p, few), send(: few), me == root)), "reduce in place")
    call expect(all(receive(few + 1 :) == send(few + 1 :)), "reduce in place: the rest")
  end subroutine

  subroutine operations(c, me, p)
    COMM, intent(in) :: c
    integer, intent(in) :: me, p
    integer :: send(n), receive(n), folded(n), pair(2), low(2), counts(p), before, r
    complex :: z, total
    double precision :: x(n), most(n)
    logical :: mine, every
    OPERATION :: op

    send = values(me, 0, n)
    call MPI_Allreduce(send, receive, n, MPI_INTEGER, MPI_SUM, c ERROR)
    call expect(all(receive == sums(p, n)), "allreduce")
    call MPI_Allreduce(MPI_IN_PLACE, send, n, MPI_INTEGER, MPI_SUM, c ERROR)
    call expect(all(send == sums(p, n)), "allreduce in place")

    x = dble(values(me, 0, n)) / 3
    call MPI_Allreduce(x, most, n, MPI_DOUBLE_PRECISION, MPI_MAX, c ERROR)
    call expect(all(most == dble(values(p - 1, 0, n)) / 3), "allreduce, greatest")
    x = 0.1d0 * (me + 1)
    call MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE_PRECISION, MPI_SUM, c ERROR)
    call expect(all(abs(x - 0.05d0 * p * (p + 1)) < 1d-12), "allreduce, sum of tenths")

    z = cmplx(me, -2 * me)
    call MPI_Allreduce(z, total, 1, MPI_COMPLEX, MPI_SUM, c ERROR)
    call expect(total == cmplx(p * (p - 1) / 2, -p * (p - 1)), "allreduce, complex")

    mine = me /= p - 1
    call MPI_Allreduce(mine, every, 1, MPI_LOGICAL, MPI_LAND, c ERROR)
    call expect(.not. every, "allreduce, and")
    call MPI_Allreduce(mine, every, 1, MPI_LOGICAL, MPI_LOR, c ERROR)
    call expect(every .eqv. p > 1, "allreduce, or")

    pair = [mod(me + 1, p), me]
    call MPI_Allreduce(pair, low, 1, MPI_2INTEGER, MPI_MINLOC, c ERROR)
    call expect(all(low == [0, p - 1]), "allreduce, place of the least")

    call MPI_Scan(values(me, 0, n), receive, n, MPI_INTEGER, MPI_SUM, c ERROR)
    call expect(all(receive == sums(me + 1, n)), "scan")
    receive = values(me, 0, n)
    call MPI_Scan(MPI_IN_PLACE, receive, n, MPI_INTEGER, MPI_SUM, c ERROR)
    call expect(all(receive == sums(me + 1, n)), "scan in place")
    receive = -1
    call MPI_Exscan(values(me, 0, n), receive, n, MPI_INTEGER, MPI_SUM, c ERROR)
    if (me > 0) call expect(all(receive == sums(me, n)), "exscan")
    receive = values(me, 0, n)
    call MPI_Exscan(MPI_IN_PLACE, receive, n, MPI_INTEGER, MPI_SUM, c ERROR)
    if (me > 0) call expect(all(receive == sums(me, n)), "exscan in place")

    ! Rank r receives r + 1 elements; then all receive two.
    counts = [(r + 1, r = 0, p - 1)]
    before = sum(counts(: me))
    folded(: sum(counts)) = sums(p, sum(counts))
    receive = -1
    call MPI_Reduce_scatter(values(me, 0, sum(counts)), receive, counts, MPI_INTEGER, MPI_SUM, c ERROR)
    call expect(all(receive(: me + 1) == folded(before + 1 : before + me + 1)), "reduce_scatter")
    call expect(receive(me + 2) == -1, "reduce_scatter: the rest")
    receive(: sum(counts)) = values(me, 0, sum(counts))
    call MPI_Reduce_scatter(MPI_IN_PLACE, receive, counts, MPI_INTEGER, MPI_SUM, c ERROR)
    call expect(all(receive(: me + 1) == folded(before + 1 : before + me + 1)), "reduce_scatter in place")
    folded(: 2 * p) = sums(p, 2 * p)
    call MPI_Reduce_scatter_block(values(me, 0, 2 * p), receive, 2, MPI_INTEGER, MPI_SUM, c ERROR)
    call expect(all(receive(: 2) == folded(2 * me + 1 : 2 * me + 2)), "reduce_scatter_block")

    ! Digits in rank order.
    call MPI_Op_create(digits, .false., op ERROR)
    send = me + 1
    call MPI_Allreduce(send, receive, n, MPI_INTEGER, op, c ERROR)
    call MPI_Op_free(op ERROR)
    call expect(all(receive == 123456789 / 10 ** (9 - p)), "allreduce, an operation of the program's")
  end subroutine

  ! Gather and scatter, with equal blocks and with blocks of r + 1 elements that lie 2 r from the start.
  subroutine rooted_blocks(c, me, p)
    COMM, intent(in) :: c
    integer, intent(in) :: me, p
    integer, parameter :: b = 7
    integer :: one(b), many(b * p), bumpy(p * p + 3 * p), counts(p), places(p), r
    logical :: good
    DATATYPE :: absolute

    counts = [(r + 1, r = 0, p - 1)]
    places = [(r * (r + 1) / 2 + 2 * r, r = 0, p - 1)]

    one = values(me, root, b)
    many = -1
    call MPI_Gather(one, b, MPI_INTEGER, many, b, MPI_INTEGER, root, c ERROR)
    call expect(all(many == merge([(values(r, root, b), r = 0, p - 1)], -1, me == root)), "gather")

    ! The root's own block is there already; the others send from absolute addresses.
    many = -1
    absolute = there(one, b)
    if (me == root) then
       many(me * b + 1 : me * b + b) = one
       call MPI_Gather(MPI_IN_PLACE, 0, MPI_INTEGER, many, b, MPI_INTEGER, root, c ERROR)
    else
       call MPI_Gather(MPI_BOTTOM, 1, absolute, many, b, MPI_INTEGER, root, c ERROR)
    end if
    call expect(all(many == merge([(values(r, root, b), r = 0, p - 1)], -1, me == root)), "gather in place")

    one = -1
    if (me == root) many = [(values(root, r, b), r = 0, p - 1)]
    call MPI_Scatter(many, b, MPI_INTEGER, MPI_BOTTOM, 1, absolute, root, c ERROR)
    call MPI_Type_free(absolute ERROR)
    call expect(all(one == values(root, me, b)), "scatter to MPI_BOTTOM")
    one = -1
    if (me == root) then
       call MPI_Scatter(many, b, MPI_INTEGER, MPI_IN_PLACE, 0, MPI_INTEGER, root, c ERROR)
    else
       call MPI_Scatter(many, b, MPI_INTEGER, one, b, MPI_INTEGER, root, c ERROR)
    end if
    call expect(all(one == merge(-1, values(root, me, b), me == root)), "scatter in place")

    bumpy = -1
    call MPI_Gatherv(values(me, root, me + 1), me + 1, MPI_INTEGER, bumpy, counts, places, MPI_INTEGER, root, c ERROR)
    good = .true.
    do r = 0, p - 1
       if (me == root) good = good .and. all(bumpy(places(r + 1) + 1 : places(r + 1) + r + 1) == values(r, root, r + 1))
    end do
    call expect(good, "gatherv")
    call expect(count(bumpy == -1) == size(bumpy) - merge(sum(counts), 0, me == root), "gatherv: holes")
    if (me == root) then
       call MPI_Gatherv(MPI_IN_PLACE, 0, MPI_INTEGER, bumpy, counts, places, MPI_INTEGER, root, c ERROR)
       call expect(all(bumpy(places(me + 1) + 1 : places(me + 1) + me + 1) == values(me, root, me + 1)), "gatherv in place")
    else
       call MPI_Gatherv(one, me + 1, MPI_INTEGER, bumpy, counts, places, MPI_INTEGER, root, c ERROR)
    end if

    do r = 0, p - 1
       bumpy(places(r + 1) + 1 : places(r + 1) + r + 1) = values(root, r, r + 1)
    end do
    one = -1
    call MPI_Scatterv(bumpy, counts, places, MPI_INTEGER, one, me + 1, MPI_INTEGER, root, c ERROR)
    call expect(all(one(: me + 1) == values(root, me, me + 1)), "scatterv")
    call expect(all(one(me + 2 :) == -1), "scatterv: the rest")
    one = -1
    if (me == root) then
       call MPI_Scatterv(bumpy, counts, places, MPI_INTEGER, MPI_IN_PLACE, 0, MPI_INTEGER, root, c ERROR)
    else
       call MPI_Scatterv(bumpy, counts, places, MPI_INTEGER, one, me + 1, MPI_INTEGER, root, c ERROR)
    end if
    call expect(all(one(: me + 1) == merge(-1, values(root, me, me + 1), me == root)), "scatterv in place")
  end subroutine

  ! Allgather and alltoall, likewise; in alltoallv rank r has r + s + 1 elements for s, so that in place does too.
  subroutine blocks_of_all(c, me, p)
    COMM, intent(in) :: c
    integer, intent(in) :: me, p
    integer, parameter :: b = 5
    integer :: one(b), many(b * p), from(b * p), counts(p), places(p), r
    integer, allocatable, target, asynchronous :: bumpy(:), sent(:), wanted(:)
    DATATYPE :: absolute, types(p)

    one = values(me, 0, b)
    many = -1
    call MPI_Allgather(one, b, MPI_INTEGER, many, b, MPI_INTEGER, c ERROR)
    call expect(all(many == [(values(r, 0, b), r = 0, p - 1)]), "allgather")
    many = -1
    many(me * b + 1 : me * b + b) = one
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, many, b, MPI_INTEGER, c ERROR)
    call expect(all(many == [(values(r, 0, b), r = 0, p - 1)]), "allgather in place")
    many = -1
    absolute = there(one, b)
    call MPI_Allgather(MPI_BOTTOM, 1, absolute, many, b, MPI_INTEGER, c ERROR)
    call MPI_Type_free(absolute ERROR)
    call expect(all(many == [(values(r, 0, b), r = 0, p - 1)]), "allgather from MPI_BOTTOM")

    from = [(values(me, r, b), r = 0, p - 1)]
    many = -1
    call MPI_Alltoall(from, b, MPI_INTEGER, many, b, MPI_INTEGER, c ERROR)
    call expect(all(many == [(values(r, me, b), r = 0, p - 1)]), "alltoall")
    call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INTEGER, from, b, MPI_INTEGER, c ERROR)
    call expect(all(from == many), "alltoall in place")

    ! Blocks with a hole of one element behind each.
    counts = [(r + 1, r = 0, p - 1)]
    places = [(sum(counts(: r)) + r, r = 0, p - 1)]
    allocate (wanted, source = [([values(r, 0, r + 1), -1], r = 0, p - 1)])
    allocate (bumpy(size(wanted)), source = -1)
    call MPI_Allgatherv(values(me, 0, me + 1), me + 1, MPI_INTEGER, bumpy, counts, places, MPI_INTEGER, c ERROR)
    call expect(all(bumpy == wanted), "allgatherv")
    bumpy = -1
    bumpy(places(me + 1) + 1 : places(me + 1) + me + 1) = values(me, 0, me + 1)
    call MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INTEGER, bumpy, counts, places, MPI_INTEGER, c ERROR)
    call expect(all(bumpy == wanted), "allgatherv in place")

    counts = [(me + r + 1, r = 0, p - 1)]
    places = [(sum(counts(: r)) + r, r = 0, p - 1)]
    allocate (sent, source = [([values(me, r, me + r + 1), -1], r = 0, p - 1)])
    deallocate (bumpy, wanted)
    allocate (wanted, source = [([values(r, me, me + r + 1), -1], r = 0, p - 1)])
    allocate (bumpy(size(wanted)), source = -1)
    call MPI_Alltoallv(sent, counts, places, MPI_INTEGER, bumpy, counts, places, MPI_INTEGER, c ERROR)
    call expect(all(bumpy == wanted), "alltoallv")
    call MPI_Alltoallv(MPI_IN_PLACE, counts, places, MPI_INTEGER, sent, counts, places, MPI_INTEGER, c ERROR)
    call expect(all(sent == wanted), "alltoallv in place")

    ! Each block of a type of its own, from absolute addresses, then in place.
    sent = [([values(me, r, me + r + 1), -1], r = 0, p - 1)]
    bumpy = -1
    do r = 0, p - 1
       types(r + 1) = there(sent(places(r + 1) + 1), counts(r + 1))
    end do
    call MPI_Alltoallw(MPI_BOTTOM, [(1, r = 1, p)], [(0, r = 1, p)], types, bumpy, counts, 4 * places, [(MPI_INTEGER, r = 1, p)], &
         c ERROR)
    call expect(all(bumpy == wanted), "alltoallw")
    do r = 0, p - 1
       call MPI_Type_free(types(r + 1) ERROR)
    end do
    call MPI_Alltoallw(MPI_IN_PLACE, counts, places, types, sent, counts, 4 * places, [(MPI_INTEGER, r = 1, p)], c ERROR)
    call expect(all(sent == wanted), "alltoallw in place")
  end subroutine

  ! Communicators that are used while they are freed, and what comes at their handles.
  subroutine deletions(c)
    COMM, intent(in) :: c
    integer, parameter :: turns = 10
    integer :: key, turn, before
    root = 0
    before = callbacks
    call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, gone, key, 0_MPI_ADDRESS_KIND ERROR)
    do turn = 1, turns
       call MPI_Comm_split(c, 0, rank * turn, dying ERROR)
       call MPI_Comm_set_attr(dying, key, 0_MPI_ADDRESS_KIND ERROR)
       call broadcasts(dying, rank)
       if (mod(turn, 2) == 0) call MPI_Comm_free(dying ERROR)
       if (mod(turn, 2) == 1) call MPI_Comm_disconnect(dying ERROR)
       call expect(dying == MPI_COMM_NULL, "the handle of what is freed")
       call MPI_Comm_split(c, 0, -rank, dying ERROR)
       call broadcasts(dying, ranks - 1 - rank)
       call MPI_Comm_free(dying ERROR)
    end do
    call expect(callbacks == before + turns, "collectives in delete callbacks")
    call MPI_Comm_free_keyval(key ERROR)
  end subroutine

  ! The errors are the MPI's own.
  subroutine bad_arguments(c)
    COMM, intent(in) :: c
    integer :: buffer(1), other(1), code
    buffer = 0
    call MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN ERROR)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN ERROR)
    call MPI_Bcast(buffer, 1, MPI_INTEGER, ranks, c, code)
    call expect_class(code, MPI_ERR_ROOT, "bcast from a root that is none")
    call MPI_Bcast(buffer, -1, MPI_INTEGER, 0, c, code)
    call expect_class(code, MPI_ERR_COUNT, "bcast of less than nothing")
    call MPI_Gather(buffer, 1, MPI_DATATYPE_NULL, other, 1, MPI_INTEGER, 0, c, code)
    call expect_class(code, MPI_ERR_TYPE, "gather of no type")
    call MPI_Allreduce(buffer, other, 1, MPI_INTEGER, MPI_OP_NULL, c, code)
    call expect_class(code, MPI_ERR_OP, "allreduce by no operation")
    call MPI_Barrier(MPI_COMM_NULL, code)
    call expect_class(code, MPI_ERR_COMM, "barrier of no communicator")
  end subroutine

  subroutine expect_class(code, wanted, what)
    integer, intent(in) :: code, wanted
    character(*), intent(in) :: what
    integer :: class
    call MPI_Error_class(code, class ERROR)
    call expect(class == wanted, what)
  end subroutine
end program
