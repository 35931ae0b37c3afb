/*
 * MPI's standard ABI (MPI 5.0, the chapter Application Binary Interface), as far as the shim uses it: so its library for MPIs with that
 * ABI is built where no MPI is. Handles are numbers, cast to pointers to types that no one defines; their values are the standard's
 * (its sections Handle Constants and Defined Constants). Programs are compiled with their MPI's own mpi.h.
 */
#ifndef UNISONO_ABI_MPI_H
#define UNISONO_ABI_MPI_H

#include <stdint.h>

#define MPI_VERSION 5
#define MPI_SUBVERSION 0
#define MPI_ABI_VERSION 1
#define MPI_ABI_SUBVERSION 0

typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset, MPI_Count;

typedef struct MPI_ABI_Comm *MPI_Comm;
typedef struct MPI_ABI_Datatype *MPI_Datatype;
typedef struct MPI_ABI_Errhandler *MPI_Errhandler;
typedef struct MPI_ABI_File *MPI_File;
typedef struct MPI_ABI_Group *MPI_Group;
typedef struct MPI_ABI_Info *MPI_Info;
typedef struct MPI_ABI_Message *MPI_Message;
typedef struct MPI_ABI_Op *MPI_Op;
typedef struct MPI_ABI_Request *MPI_Request;
typedef struct MPI_ABI_Session *MPI_Session;
typedef struct MPI_ABI_Win *MPI_Win;

typedef struct {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;

/* ---- Handles ---- */

#define MPI_OP_NULL ((MPI_Op)0x20)
#define MPI_SUM ((MPI_Op)0x21)
#define MPI_MIN ((MPI_Op)0x22)
#define MPI_MAX ((MPI_Op)0x23)
#define MPI_PROD ((MPI_Op)0x24)
#define MPI_BAND ((MPI_Op)0x28)
#define MPI_BOR ((MPI_Op)0x29)
#define MPI_BXOR ((MPI_Op)0x2a)
#define MPI_LAND ((MPI_Op)0x30)
#define MPI_LOR ((MPI_Op)0x31)
#define MPI_LXOR ((MPI_Op)0x32)
#define MPI_MINLOC ((MPI_Op)0x38)
#define MPI_MAXLOC ((MPI_Op)0x39)
#define MPI_REPLACE ((MPI_Op)0x3c)
#define MPI_NO_OP ((MPI_Op)0x3d)

#define MPI_COMM_NULL ((MPI_Comm)0x100)
#define MPI_COMM_WORLD ((MPI_Comm)0x101)
#define MPI_COMM_SELF ((MPI_Comm)0x102)
#define MPI_WIN_NULL ((MPI_Win)0x110)
#define MPI_INFO_NULL ((MPI_Info)0x130)
#define MPI_ERRHANDLER_NULL ((MPI_Errhandler)0x140)
#define MPI_ERRORS_RETURN ((MPI_Errhandler)0x143)
#define MPI_REQUEST_NULL ((MPI_Request)0x180)

#define MPI_DATATYPE_NULL ((MPI_Datatype)0x200)
#define MPI_AINT ((MPI_Datatype)0x201)
#define MPI_COUNT ((MPI_Datatype)0x202)
#define MPI_OFFSET ((MPI_Datatype)0x203)
#define MPI_PACKED ((MPI_Datatype)0x207)
#define MPI_SHORT ((MPI_Datatype)0x208)
#define MPI_INT ((MPI_Datatype)0x209)
#define MPI_LONG ((MPI_Datatype)0x20a)
#define MPI_LONG_LONG ((MPI_Datatype)0x20b)
#define MPI_UNSIGNED_SHORT ((MPI_Datatype)0x20c)
#define MPI_UNSIGNED ((MPI_Datatype)0x20d)
#define MPI_UNSIGNED_LONG ((MPI_Datatype)0x20e)
#define MPI_UNSIGNED_LONG_LONG ((MPI_Datatype)0x20f)
#define MPI_FLOAT ((MPI_Datatype)0x210)
#define MPI_C_FLOAT_COMPLEX ((MPI_Datatype)0x212)
#define MPI_CXX_FLOAT_COMPLEX ((MPI_Datatype)0x213)
#define MPI_DOUBLE ((MPI_Datatype)0x214)
#define MPI_C_DOUBLE_COMPLEX ((MPI_Datatype)0x216)
#define MPI_CXX_DOUBLE_COMPLEX ((MPI_Datatype)0x217)
#define MPI_LOGICAL ((MPI_Datatype)0x218)
#define MPI_INTEGER ((MPI_Datatype)0x219)
#define MPI_REAL ((MPI_Datatype)0x21a)
#define MPI_COMPLEX ((MPI_Datatype)0x21b)
#define MPI_DOUBLE_PRECISION ((MPI_Datatype)0x21c)
#define MPI_DOUBLE_COMPLEX ((MPI_Datatype)0x21d)
#define MPI_CHARACTER ((MPI_Datatype)0x21e)
#define MPI_LONG_DOUBLE ((MPI_Datatype)0x220)
#define MPI_C_LONG_DOUBLE_COMPLEX ((MPI_Datatype)0x224)
#define MPI_CXX_LONG_DOUBLE_COMPLEX ((MPI_Datatype)0x225)
#define MPI_FLOAT_INT ((MPI_Datatype)0x228)
#define MPI_DOUBLE_INT ((MPI_Datatype)0x229)
#define MPI_LONG_INT ((MPI_Datatype)0x22a)
#define MPI_2INT ((MPI_Datatype)0x22b)
#define MPI_SHORT_INT ((MPI_Datatype)0x22c)
#define MPI_LONG_DOUBLE_INT ((MPI_Datatype)0x22d)
#define MPI_2REAL ((MPI_Datatype)0x230)
#define MPI_2DOUBLE_PRECISION ((MPI_Datatype)0x231)
#define MPI_2INTEGER ((MPI_Datatype)0x232)
#define MPI_C_BOOL ((MPI_Datatype)0x238)
#define MPI_CXX_BOOL ((MPI_Datatype)0x239)
#define MPI_WCHAR ((MPI_Datatype)0x23c)
#define MPI_INT8_T ((MPI_Datatype)0x240)
#define MPI_UINT8_T ((MPI_Datatype)0x241)
#define MPI_CHAR ((MPI_Datatype)0x243)
#define MPI_SIGNED_CHAR ((MPI_Datatype)0x244)
#define MPI_UNSIGNED_CHAR ((MPI_Datatype)0x245)
#define MPI_BYTE ((MPI_Datatype)0x247)
#define MPI_INT16_T ((MPI_Datatype)0x248)
#define MPI_UINT16_T ((MPI_Datatype)0x249)
#define MPI_INT32_T ((MPI_Datatype)0x250)
#define MPI_UINT32_T ((MPI_Datatype)0x251)
#define MPI_INT64_T ((MPI_Datatype)0x258)
#define MPI_UINT64_T ((MPI_Datatype)0x259)
#define MPI_INTEGER1 ((MPI_Datatype)0x2c1)
#define MPI_INTEGER2 ((MPI_Datatype)0x2c9)
#define MPI_INTEGER4 ((MPI_Datatype)0x2d1)
#define MPI_REAL4 ((MPI_Datatype)0x2d2)
#define MPI_INTEGER8 ((MPI_Datatype)0x2d9)
#define MPI_REAL8 ((MPI_Datatype)0x2da)
#define MPI_COMPLEX8 ((MPI_Datatype)0x2db)
#define MPI_REAL16 ((MPI_Datatype)0x2e2)
#define MPI_COMPLEX16 ((MPI_Datatype)0x2e3)
#define MPI_COMPLEX32 ((MPI_Datatype)0x2eb)

/* ---- Other constants ---- */

#define MPI_BOTTOM ((void *)0)
#define MPI_IN_PLACE ((void *)1)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)

enum {
    MPI_SUCCESS = 0,
    MPI_ERR_BUFFER = 1,
    MPI_ERR_REQUEST = 7,
    MPI_ERR_ARG = 13,
    MPI_ERR_TRUNCATE = 15,
    MPI_ERR_OTHER = 16,
    MPI_ERR_INTERN = 17,
    MPI_ERR_NO_MEM = 39,

    MPI_ANY_SOURCE = -1,
    MPI_PROC_NULL = -3,
    MPI_UNDEFINED = -32766,
    MPI_KEYVAL_INVALID = 0,
    MPI_TAG_UB = 501,
    MPI_THREAD_SINGLE = 0,
    MPI_THREAD_MULTIPLE = 4096,
    MPI_ORDER_C = 12,

    MPI_CART = 211,
    MPI_GRAPH = 212,
    MPI_DIST_GRAPH = 213,

    MPI_COMBINER_NAMED = 101,
    MPI_COMBINER_DUP = 102,
    MPI_COMBINER_CONTIGUOUS = 103,
    MPI_COMBINER_VECTOR = 104,
    MPI_COMBINER_HVECTOR = 105,
    MPI_COMBINER_INDEXED = 106,
    MPI_COMBINER_HINDEXED = 107,
    MPI_COMBINER_INDEXED_BLOCK = 108,
    MPI_COMBINER_HINDEXED_BLOCK = 109,
    MPI_COMBINER_STRUCT = 110,
    MPI_COMBINER_SUBARRAY = 111,
    MPI_COMBINER_F90_REAL = 113,
    MPI_COMBINER_F90_COMPLEX = 114,
    MPI_COMBINER_F90_INTEGER = 115,
    MPI_COMBINER_RESIZED = 116
};

#define MPI_MAX_ERROR_STRING 512
#define MPI_MAX_LIBRARY_VERSION_STRING 8192

/* ---- Functions ---- */

typedef int MPI_Grequest_query_function(void *extra_state, MPI_Status *status);
typedef int MPI_Grequest_free_function(void *extra_state);
typedef int MPI_Grequest_cancel_function(void *extra_state, int complete);
typedef int MPI_Comm_copy_attr_function(MPI_Comm from, int keyval, void *extra_state, void *in, void *out, int *flag);
typedef int MPI_Comm_delete_attr_function(MPI_Comm comm, int keyval, void *value, void *extra_state);
typedef int MPI_Type_copy_attr_function(MPI_Datatype from, int keyval, void *extra_state, void *in, void *out, int *flag);
typedef int MPI_Type_delete_attr_function(MPI_Datatype type, int keyval, void *value, void *extra_state);
typedef int MPI_Win_copy_attr_function(MPI_Win from, int keyval, void *extra_state, void *in, void *out, int *flag);
typedef int MPI_Win_delete_attr_function(MPI_Win win, int keyval, void *value, void *extra_state);

/* A function of the MPI, which is called by its second name. */
#define MPI_ABI_FUNCTION(name, ...) int PMPI_##name(__VA_ARGS__)

MPI_ABI_FUNCTION(Initialized, int *flag);
MPI_ABI_FUNCTION(Finalized, int *flag);
MPI_ABI_FUNCTION(Finalize, void);
MPI_ABI_FUNCTION(Query_thread, int *provided);
MPI_ABI_FUNCTION(Abort, MPI_Comm comm, int code);
MPI_ABI_FUNCTION(Get_library_version, char *version, int *length);
MPI_ABI_FUNCTION(Error_class, int code, int *class);
MPI_ABI_FUNCTION(Error_string, int code, char *text, int *length);
MPI_ABI_FUNCTION(Errhandler_free, MPI_Errhandler *handler);

MPI_ABI_FUNCTION(Comm_size, MPI_Comm comm, int *size);
MPI_ABI_FUNCTION(Comm_rank, MPI_Comm comm, int *rank);
MPI_ABI_FUNCTION(Comm_group, MPI_Comm comm, MPI_Group *group);
MPI_ABI_FUNCTION(Comm_test_inter, MPI_Comm comm, int *flag);
MPI_ABI_FUNCTION(Comm_split, MPI_Comm comm, int color, int key, MPI_Comm *made);
MPI_ABI_FUNCTION(Comm_free, MPI_Comm *comm);
MPI_Comm PMPI_Comm_fromint(int handle);
MPI_ABI_FUNCTION(Comm_get_errhandler, MPI_Comm comm, MPI_Errhandler *handler);
MPI_ABI_FUNCTION(Comm_set_errhandler, MPI_Comm comm, MPI_Errhandler handler);
MPI_ABI_FUNCTION(Comm_call_errhandler, MPI_Comm comm, int code);
MPI_ABI_FUNCTION(
    Comm_create_keyval, MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *delete, int *keyval, void *extra_state);
MPI_ABI_FUNCTION(Comm_get_attr, MPI_Comm comm, int keyval, void *value, int *flag);
MPI_ABI_FUNCTION(Comm_set_attr, MPI_Comm comm, int keyval, void *value);
MPI_ABI_FUNCTION(Comm_delete_attr, MPI_Comm comm, int keyval);
MPI_ABI_FUNCTION(Group_size, MPI_Group group, int *size);
MPI_ABI_FUNCTION(Group_free, MPI_Group *group);
MPI_ABI_FUNCTION(Group_translate_ranks, MPI_Group from, int n, const int ranks[], MPI_Group to, int others[]);
MPI_ABI_FUNCTION(Topo_test, MPI_Comm comm, int *status);
MPI_ABI_FUNCTION(Cartdim_get, MPI_Comm comm, int *dimensions);
MPI_ABI_FUNCTION(Cart_shift, MPI_Comm comm, int direction, int by, int *source, int *target);
MPI_ABI_FUNCTION(Graph_neighbors_count, MPI_Comm comm, int rank, int *count);
MPI_ABI_FUNCTION(Graph_neighbors, MPI_Comm comm, int rank, int most, int neighbors[]);
MPI_ABI_FUNCTION(Dist_graph_neighbors_count, MPI_Comm comm, int *sources, int *targets, int *weighted);
MPI_ABI_FUNCTION(
    Dist_graph_neighbors, MPI_Comm comm, int most_sources, int sources[], int source_weights[], int most_targets, int targets[],
    int target_weights[]);

MPI_ABI_FUNCTION(Type_size_x, MPI_Datatype type, MPI_Count *size);
MPI_ABI_FUNCTION(Type_get_extent_x, MPI_Datatype type, MPI_Count *lower, MPI_Count *extent);
MPI_ABI_FUNCTION(Type_get_true_extent_x, MPI_Datatype type, MPI_Count *lower, MPI_Count *extent);
MPI_ABI_FUNCTION(
    Type_get_envelope_c, MPI_Datatype type, MPI_Count *integers, MPI_Count *addresses, MPI_Count *counts, MPI_Count *types,
    int *combiner);
MPI_ABI_FUNCTION(
    Type_get_contents_c, MPI_Datatype type, MPI_Count most_integers, MPI_Count most_addresses, MPI_Count most_counts,
    MPI_Count most_types, int integers[], MPI_Aint addresses[], MPI_Count counts[], MPI_Datatype types[]);
MPI_ABI_FUNCTION(Type_contiguous, int count, MPI_Datatype type, MPI_Datatype *made);
MPI_ABI_FUNCTION(
    Type_create_hindexed, int count, const int lengths[], const MPI_Aint places[], MPI_Datatype type, MPI_Datatype *made);
MPI_ABI_FUNCTION(
    Type_create_struct_c, MPI_Count count, const MPI_Count lengths[], const MPI_Count places[], const MPI_Datatype types[],
    MPI_Datatype *made);
MPI_ABI_FUNCTION(Type_commit, MPI_Datatype *type);
MPI_ABI_FUNCTION(Type_free, MPI_Datatype *type);
MPI_ABI_FUNCTION(
    Type_create_keyval, MPI_Type_copy_attr_function *copy, MPI_Type_delete_attr_function *delete, int *keyval, void *extra_state);
MPI_ABI_FUNCTION(Type_get_attr, MPI_Datatype type, int keyval, void *value, int *flag);
MPI_ABI_FUNCTION(Type_set_attr, MPI_Datatype type, int keyval, void *value);
MPI_ABI_FUNCTION(Pack, const void *from, int count, MPI_Datatype type, void *to, int bytes, int *position, MPI_Comm comm);
MPI_ABI_FUNCTION(Unpack, const void *from, int bytes, int *position, void *to, int count, MPI_Datatype type, MPI_Comm comm);
MPI_ABI_FUNCTION(Get_count, const MPI_Status *status, MPI_Datatype type, int *count);
MPI_ABI_FUNCTION(Op_commutative, MPI_Op operation, int *commutes);
MPI_ABI_FUNCTION(Op_free, MPI_Op *operation);

MPI_ABI_FUNCTION(Iprobe, int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status);
MPI_ABI_FUNCTION(Recv, void *to, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status);
MPI_ABI_FUNCTION(Recv_init, void *to, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request);
MPI_ABI_FUNCTION(Isend, const void *from, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm, MPI_Request *request);
MPI_ABI_FUNCTION(Irecv, void *to, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request);
MPI_ABI_FUNCTION(
    Sendrecv, const void *from, int sent, MPI_Datatype send_type, int target, int send_tag, void *to, int received,
    MPI_Datatype receive_type, int source, int receive_tag, MPI_Comm comm, MPI_Status *status);
MPI_ABI_FUNCTION(Wait, MPI_Request *request, MPI_Status *status);
MPI_ABI_FUNCTION(Test, MPI_Request *request, int *flag, MPI_Status *status);
MPI_ABI_FUNCTION(Cancel, MPI_Request *request);
MPI_ABI_FUNCTION(Test_cancelled, const MPI_Status *status, int *flag);
MPI_ABI_FUNCTION(Request_free, MPI_Request *request);
MPI_ABI_FUNCTION(Request_get_status, MPI_Request request, int *flag, MPI_Status *status);
MPI_ABI_FUNCTION(Status_set_cancelled, MPI_Status *status, int flag);
MPI_ABI_FUNCTION(Status_set_elements, MPI_Status *status, MPI_Datatype type, int count);
MPI_ABI_FUNCTION(
    Grequest_start, MPI_Grequest_query_function *query, MPI_Grequest_free_function *free, MPI_Grequest_cancel_function *cancel,
    void *extra_state, MPI_Request *request);
MPI_ABI_FUNCTION(Grequest_complete, MPI_Request request);

MPI_ABI_FUNCTION(
    Win_create_keyval, MPI_Win_copy_attr_function *copy, MPI_Win_delete_attr_function *delete, int *keyval, void *extra_state);
MPI_ABI_FUNCTION(Win_get_attr, MPI_Win win, int keyval, void *value, int *flag);
MPI_ABI_FUNCTION(Win_set_attr, MPI_Win win, int keyval, void *value);
MPI_ABI_FUNCTION(Win_delete_attr, MPI_Win win, int keyval);
MPI_ABI_FUNCTION(Win_shared_query, MPI_Win win, int rank, MPI_Aint *bytes, int *unit, void *base);

/* The collectives that the shim itself calls. */
MPI_ABI_FUNCTION(Allgather, const void *from, int sent, MPI_Datatype send_type, void *to, int received, MPI_Datatype type, MPI_Comm comm);
MPI_ABI_FUNCTION(Allreduce, const void *from, void *to, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm comm);
MPI_ABI_FUNCTION(
    Iallreduce, const void *from, void *to, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm comm, MPI_Request *request);
MPI_ABI_FUNCTION(Reduce, const void *from, void *to, int count, MPI_Datatype type, MPI_Op operation, int root, MPI_Comm comm);
MPI_ABI_FUNCTION(Reduce_local, const void *from, void *to, int count, MPI_Datatype type, MPI_Op operation);

#endif
