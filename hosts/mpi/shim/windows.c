/*
 * MPI_Win_test, asked twice. MPICH's looks before it moves anything: a program that comes to it through a barrier behind its
 * peer's MPI_Win_complete finds the window open once more than under MPICH's own barrier, which would have moved the message.
 */
int shim_export_win_test(shim_handle win, int *flag) __asm__("MPI_Win_test");
int shim_export_win_test(shim_handle win, int *flag) {
    typedef int function(shim_handle, int *);
    function *underlying = (function *)SHIM_ONCE(shim_function, "PMPI_Win_test");
    int code = underlying(win, flag);
    return code == MPI_SUCCESS && !*flag && shim_is_on() ? underlying(win, flag) : code;
}
