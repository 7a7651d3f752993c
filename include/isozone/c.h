/* Isozone's interface for C, and for languages that call C: <isozone/c.h>.

   Loading libisozone.so (linked, preloaded or dlopened) makes RocksDB accept isozone:// URIs wherever it takes the URI
   of a file system or of an Env. The functions here do what RocksDB's own <rocksdb/c.h> has no function for: they mount
   a device and make a rocksdb_env_t of it, format it, show its counters, collect garbage, and have Isozone choose what
   RocksDB compacts.

     char* error = NULL;
     isozone_t* device = isozone_open("isozone://emu:/data/ssd.img", &error);
     rocksdb_env_t* env = isozone_create_env(device, &error);
     rocksdb_options_set_env(options, env);
     ... rocksdb_open() ... rocksdb_close() ...
     rocksdb_env_destroy(env);
     isozone_close(device);

   Errors are told as in RocksDB: *errptr must be NULL, or a string that malloc has made, before the call. On an error
   it is freed and replaced by one line for a person, which the caller frees with isozone_free, rocksdb_free or free.
   Without an error it stays as it was. A function that returns a pointer returns NULL on an error. If errptr is NULL,
   the text of an error is lost.

   Strings end with a zero byte. No function keeps a pointer that it is given, or throws.

   Thread safety: any thread may call any function, also with one isozone_t at the same time. isozone_close must be the
   last call with its argument. */
#pragma once

#include <stdint.h> /* NOLINT(modernize-deprecated-headers): C has no other */

#define ISOZONE_C_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* The types of <rocksdb/c.h> that are used here; that header need not be included. */
typedef struct rocksdb_env_t rocksdb_env_t;
typedef struct rocksdb_options_t rocksdb_options_t;

/* A mounted device. */
typedef struct isozone_t isozone_t;

/* Returns Isozone's version, and that of the RocksDB it was built for: "0.1.0 (RocksDB 7.8.3)". It is never freed. */
ISOZONE_C_EXPORT const char* isozone_version(void);

/* Does nothing. Loading the library has registered isozone:// with RocksDB. A program that calls no other function here
   calls this one, so that the linker does not leave the library out. */
ISOZONE_C_EXPORT void isozone_register(void);

/* Writes an empty file system to the device of `uri`, and makes the device if its kind allows that (an emulated SSD in
   a new image file), like `isozone mkfs`. It is an error if the device has a file system already, unless `force` is not
   0: then all its data is lost. */
ISOZONE_C_EXPORT void isozone_format(const char* uri, unsigned char force, char** errptr);

/* Mounts the device of `uri`, or joins the mount that this process has already. Options follow the name of the device,
   as in "isozone://emu:/data/ssd.img?log_dir=/var/log/db" (docs/rocksdb.md). The device stays mounted until
   isozone_close was called, every Env of it is destroyed, and no file on it is open. */
ISOZONE_C_EXPORT isozone_t* isozone_open(const char* uri, char** errptr);
/* Gives up what isozone_open has returned. If `device` is NULL, it does nothing. */
ISOZONE_C_EXPORT void isozone_close(isozone_t* device);

/* Returns an Env on the device, for rocksdb_options_set_env and all other functions of RocksDB that take one. The
   caller ends it with rocksdb_env_destroy after its last database is closed. It may outlive `device`. It is an error if
   the RocksDB of this process has another layout of rocksdb_env_t than those of 7.8 to 11.8. */
ISOZONE_C_EXPORT rocksdb_env_t* isozone_create_env(isozone_t* device, char** errptr);

/* Returns the counters since the mount, as a JSON object; isozone.h describes it at GetStats. The caller frees it with
   isozone_free. */
ISOZONE_C_EXPORT char* isozone_statistics(isozone_t* device, char** errptr);

/* Collects garbage now, in this thread, until `until_free_percent` (0 to 100) of the space is free; 100 reclaims all
   that can be reclaimed. Databases may be in use. `progress` may be NULL. It is called every few MiB with `context`,
   the bytes copied so far and those that may have to be copied in all; if it returns 0, the round of GC stops, which is
   no error. It is an error if `progress` collects. */
typedef unsigned char (*isozone_progress)(void* context, uint64_t bytes_copied, uint64_t bytes_to_copy);
ISOZONE_C_EXPORT void isozone_collect(isozone_t* device, double until_free_percent, isozone_progress progress,
                                      void* context, char** errptr);

/* Changes the garbage collection until the device is unmounted: the name of a scheme ("lifetime"), or options as in a
   URI ("gc=lifetime&gc_start=20"). If one is unknown, it is an error and nothing is changed. */
ISOZONE_C_EXPORT void isozone_set_collection(isozone_t* device, const char* text, char** errptr);

/* Has Isozone choose what RocksDB compacts in the default column family of databases that are opened with `options`, so
   that zones die whole (docs/steering.md). `picker` is "isozone", "ll", "leveled", "greedy" or "gear"; more options of
   the listener may follow, as in "ll;threads=2". Sets compaction_style, listeners and sst_partitioner_factory, and
   leaves all other options as they are. Compaction begins when a database is opened and ends when it is closed. */
ISOZONE_C_EXPORT void isozone_drive(rocksdb_options_t* options, const char* picker, char** errptr);

/* Frees what these functions have returned, an error or a string. If `memory` is NULL, it does nothing. */
ISOZONE_C_EXPORT void isozone_free(void* memory);

#ifdef __cplusplus
}
#endif
