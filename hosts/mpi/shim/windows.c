/*
 * MPI_Win_test, which calls the MPI's function twice. MPICH's tests the window before it makes progress. A program that
 * calls it after a barrier that follows its peer's MPI_Win_complete would find the window open once, which does not
 * happen with MPICH's own barrier, because that makes progress on the message.
 */
int shim_export_win_test(shim_handle win, int *flag) __asm__("MPI_Win_test");
int shim_export_win_test(shim_handle win, int *flag) {
    typedef int function(shim_handle, int *);
    function *underlying = (function *)SHIM_ONCE(shim_function, "PMPI_Win_test");
    int code = underlying(win, flag);
    return code == MPI_SUCCESS && !*flag && shim_is_on() ? underlying(win, flag) : code;
}
