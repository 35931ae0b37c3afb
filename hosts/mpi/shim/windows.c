/*
 * MPI_Win_test, asked twice. MPICH's looks before it moves anything: a program that comes to it through a barrier behind its
 * peer's MPI_Win_complete finds the window open once more than under MPICH's own barrier, which would have moved the message.
 */
int MPI_Win_test(MPI_Win win, int *flag) {
    int code = PMPI_Win_test(win, flag);
    return code == MPI_SUCCESS && !*flag && shim_is_on() ? PMPI_Win_test(win, flag) : code;
}
