/* Isozone's interface for C, used together with RocksDB's by a program in C11: open, write, reopen, statistics,
   GC, steered compaction, and what bad input gets. Prints the first thing that does not hold, and ends. */
#define _XOPEN_SOURCE 700

#include <isozone/c.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kKeys = 4000, kValueSize = 1000 };

static char directory[] = "/tmp/isozone-c-api-XXXXXX";
static char image[sizeof(directory) + 16];

static void Clean(void) {
  unlink(image);
  rmdir(directory);
}

#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) {                                                      \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                               \
    }                                                                        \
  } while (0)

static void CheckNone(const char* error, int line) {
  if (error == NULL) return;
  fprintf(stderr, "%s:%d: %s\n", __FILE__, line, error);
  exit(1);
}
#define CHECK_NONE(error) CheckNone(error, __LINE__)

/* There is an error in one line, with `words` in it; it is freed. */
static void CheckError(char** error, const char* words, int line) {
  if (*error == NULL || strstr(*error, words) == NULL || strchr(*error, '\n') != NULL) {
    fprintf(stderr, "%s:%d: no error with '%s' but: %s\n", __FILE__, line, words, *error ? *error : "none");
    exit(1);
  }
  isozone_free(*error);
  *error = NULL;
}
#define CHECK_ERROR(error, words) CheckError(&(error), words, __LINE__)

static rocksdb_options_t* Options(rocksdb_env_t* env) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_env(options, env);
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_write_buffer_size(options, 1 << 20);
  rocksdb_options_set_compression(options, rocksdb_no_compression);
  return options;
}

static void Fill(rocksdb_t* db, int rounds) {
  rocksdb_writeoptions_t* how = rocksdb_writeoptions_create();
  char value[kValueSize];
  char key[16];
  char* error = NULL;
  for (int i = 0; i < rounds * kKeys; ++i) {
    const int length = snprintf(key, sizeof(key), "key%08d", i % kKeys);
    memset(value, 'a' + i % 23, sizeof(value));
    rocksdb_put(db, how, key, (size_t)length, value, sizeof(value), &error);
    CHECK_NONE(error);
  }
  rocksdb_writeoptions_destroy(how);
}

static void CheckFilled(rocksdb_t* db) {
  rocksdb_readoptions_t* how = rocksdb_readoptions_create();
  char key[16];
  char* error = NULL;
  for (int i = 0; i < kKeys; ++i) {
    const int length = snprintf(key, sizeof(key), "key%08d", i);
    size_t size = 0;
    char* value = rocksdb_get(db, how, key, (size_t)length, &size, &error);
    CHECK_NONE(error);
    CHECK(value != NULL && size == kValueSize);
    rocksdb_free(value);
  }
  rocksdb_readoptions_destroy(how);
}

static void OpenWriteReopen(const char* uri) {
  char* error = NULL;
  isozone_t* device = isozone_open(uri, &error);
  CHECK_NONE(error);
  rocksdb_env_t* env = isozone_create_env(device, &error);
  CHECK_NONE(error);
  rocksdb_options_t* options = Options(env);
  for (int round = 0; round < 2; ++round) {
    rocksdb_t* db = rocksdb_open(options, "/db", &error);
    CHECK_NONE(error);
    if (round == 0) Fill(db, 1);
    CheckFilled(db);
    rocksdb_close(db);
  }
  isozone_close(device); /* the Env keeps the device mounted */
  rocksdb_t* db = rocksdb_open(options, "/db", &error);
  CHECK_NONE(error);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_env_destroy(env);
}

static unsigned char Stop(void* device, uint64_t bytes_copied, uint64_t bytes_to_copy) {
  char* error = NULL;
  CHECK(bytes_copied <= bytes_to_copy);
  isozone_collect(device, 100, NULL, NULL, &error); /* would wait for the GC that asks */
  CHECK_ERROR(error, "in a progress callback");
  return 0;
}

static void Drives(const char* uri) {
  char* error = NULL;
  isozone_t* device = isozone_open(uri, &error);
  CHECK_NONE(error);
  rocksdb_env_t* env = isozone_create_env(device, &error);
  rocksdb_options_t* options = Options(env);
  isozone_drive(options, "best", &error);
  CHECK_ERROR(error, "known: gear");
  isozone_drive(options, "none", &error); /* nothing would compact */
  CHECK_ERROR(error, "is no picker");
  isozone_drive(options, "ll;compaction=none", &error);
  CHECK_ERROR(error, "is no picker");
  CHECK(rocksdb_options_get_compaction_style(options) == 0); /* as it was: kCompactionStyleLevel */
  isozone_drive(options, "ll}; create_if_missing=false; env={", &error);
  CHECK_ERROR(error, "is no picker");
  isozone_drive(options, "ll;threads=1", &error);
  CHECK_NONE(error);
  CHECK(rocksdb_options_get_compaction_style(options) == 3); /* kCompactionStyleNone */
  CHECK(rocksdb_options_get_write_buffer_size(options) == 1 << 20);
  rocksdb_t* db = rocksdb_open(options, "/driven", &error);
  CHECK_NONE(error);
  Fill(db, 3);
  CheckFilled(db);
  rocksdb_close(db);

  char* json = isozone_statistics(device, &error);
  CHECK_NONE(error);
  CHECK(json[0] == '{' && strstr(json, "\"write_amplification\"") != NULL);
  isozone_free(json);
  isozone_set_collection(device, "lifetime", &error);
  CHECK_NONE(error);
  isozone_collect(device, 100, Stop, device, &error);
  CHECK_NONE(error);
  isozone_collect(device, 100, NULL, NULL, &error);
  CHECK_NONE(error);
  isozone_collect(device, 101, NULL, NULL, &error);
  CHECK_ERROR(error, "from 0 to 100");
  isozone_set_collection(device, "best", &error);
  CHECK_ERROR(error, "best");
  rocksdb_options_destroy(options);
  rocksdb_env_destroy(env);
  isozone_close(device);
}

static void RefusesBadInput(const char* uri) {
  char* error = NULL;
  CHECK(isozone_open(NULL, &error) == NULL);
  CHECK_ERROR(error, "the URI is NULL");
  CHECK(isozone_open("isozone://emu:/nowhere/ssd.img", &error) == NULL);
  CHECK_ERROR(error, "/nowhere/ssd.img");
  CHECK(isozone_open("isozone://emu:/nowhere/two\nlines", &error) == NULL);
  CHECK_ERROR(error, "/nowhere/two lines");
  CHECK(isozone_open("isozone://emu:/nowhere/ssd.img", NULL) == NULL);
  CHECK(isozone_create_env(NULL, &error) == NULL);
  CHECK_ERROR(error, "the device is NULL");
  CHECK(isozone_statistics(NULL, &error) == NULL);
  CHECK_ERROR(error, "the device is NULL");
  isozone_collect(NULL, 100, NULL, NULL, &error);
  CHECK_ERROR(error, "the device is NULL");
  isozone_set_collection(NULL, "full", &error);
  CHECK_ERROR(error, "the device is NULL");
  isozone_drive(NULL, "ll", &error);
  CHECK_ERROR(error, "the set of options is NULL");
  isozone_format(uri, 0, &error); /* it has a file system */
  CHECK(error != NULL);
  isozone_format(NULL, 0, &error); /* the old error is freed */
  CHECK_ERROR(error, "the URI is NULL");
  isozone_close(NULL);
  isozone_free(NULL);
}

int main(void) {
  char uri[sizeof(image) + 64];
  char* error = NULL;
  CHECK(mkdtemp(directory) != NULL);
  snprintf(image, sizeof(image), "%s/ssd.img", directory);
  atexit(Clean);
  isozone_register();
  CHECK(strstr(isozone_version(), "RocksDB") != NULL);
  snprintf(uri, sizeof(uri), "isozone://emu:%s?zones=64&zone_size=4MiB&timing=off", image);
  isozone_format(uri, 0, &error);
  CHECK_NONE(error);
  OpenWriteReopen(uri);
  Drives(uri);
  RefusesBadInput(uri);
  isozone_format(uri, 1, &error);
  CHECK_NONE(error);
  return 0;
}
