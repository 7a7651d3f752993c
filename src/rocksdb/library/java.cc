// libisozone_java.so: Isozone for Java, in the jar that scripts/build-java makes. It is built for one release of
// rocksdbjni and linked to the library that this brings, whose C++ interface is all there.
//
// rocksdbjni loads its library from a temporary file whose name differs each time, and its symbols are for that library
// alone. Library.java makes a directory with this library and a link librocksdbjni-linux64.so to that file. This
// library looks for that name beside itself, and the dynamic linker finds by the inode that it is loaded already. So
// both are one RocksDB, and nothing else in the process sees its symbols.
//
// Loading it registers isozone:// with RocksDB (isozone.cc). The functions are those of Native.java. Text is UTF-8 in
// an array of bytes, because the strings of JNI are not. An error is returned as text, null: none.
//
// Thread safety: any thread may call any function.
#include <jni.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <rocksdb/env.h>
#include <rocksdb/options.h>

#include "isozone/isozone.h"
#include "rocksdb/adapter/status_mapping.h"

namespace {

using rocksdb::Env;
using rocksdb::Status;

std::string ToString(JNIEnv* jni, jbyteArray bytes) {
  std::string result(static_cast<size_t>(jni->GetArrayLength(bytes)), '\0');
  jni->GetByteArrayRegion(bytes, 0, static_cast<jsize>(result.size()), reinterpret_cast<jbyte*>(result.data()));
  return result;
}

// Null, with an exception of Java pending, if its heap is full.
jbyteArray ToBytes(JNIEnv* jni, const std::string& text) {
  const auto size = static_cast<jsize>(text.size());
  jbyteArray result = jni->NewByteArray(size);
  if (result != nullptr) jni->SetByteArrayRegion(result, 0, size, reinterpret_cast<const jbyte*>(text.data()));
  return result;
}

// The error of body(), which returns a Status.
template <typename Body>
jbyteArray Run(JNIEnv* jni, Body&& body) noexcept {
  std::string error;
  const rocksdb::IOStatus thrown = isozone::WithoutExceptions([&] {
    const Status status = body();
    if (!status.ok()) error = status.ToString();
    return rocksdb::IOStatus::OK();
  });
  if (!thrown.ok()) error = thrown.ToString();
  return error.empty() ? nullptr : ToBytes(jni, error);
}

Env& EnvOf(jlong handle) { return *reinterpret_cast<Env*>(handle); }

jbyteArray JNICALL Version(JNIEnv* jni, jclass /*unused*/) { return ToBytes(jni, isozone::Version()); }

jbyteArray JNICALL Format(JNIEnv* jni, jclass /*unused*/, jbyteArray uri, jboolean force) {
  return Run(jni, [&] { return isozone::CreateFileSystem(ToString(jni, uri), force == JNI_TRUE); });
}

// handle[0] becomes an Env, for Close.
jbyteArray JNICALL Open(JNIEnv* jni, jclass /*unused*/, jbyteArray uri, jlongArray handle) {
  return Run(jni, [&] {
    std::shared_ptr<rocksdb::FileSystem> file_system;
    Status status = isozone::OpenFileSystem(ToString(jni, uri), &file_system);
    if (!status.ok()) return status;
    const auto opened = reinterpret_cast<jlong>(rocksdb::NewCompositeEnv(file_system).release());
    jni->SetLongArrayRegion(handle, 0, 1, &opened);
    return status;
  });
}

void JNICALL SetEnv(JNIEnv* /*unused*/, jclass /*unused*/, jlong options, jlong env) {
  reinterpret_cast<rocksdb::Options*>(options)->env = &EnvOf(env);
}

void JNICALL Close(JNIEnv* /*unused*/, jclass /*unused*/, jlong env) { delete &EnvOf(env); }

// result[0] becomes the names in `directory`, each ended by a slash.
jbyteArray JNICALL Children(JNIEnv* jni, jclass /*unused*/, jlong env, jbyteArray directory, jobjectArray result) {
  return Run(jni, [&] {
    std::vector<std::string> names;
    Status status = EnvOf(env).GetChildren(ToString(jni, directory), &names);
    if (!status.ok()) return status;
    std::string text;
    for (const std::string& name : names) text += name + '/';
    jbyteArray bytes = ToBytes(jni, text);
    if (bytes != nullptr) jni->SetObjectArrayElement(result, 0, bytes);
    return status;
  });
}

// result[0] becomes the JSON.
jbyteArray JNICALL Statistics(JNIEnv* jni, jclass /*unused*/, jlong env, jobjectArray result) {
  return Run(jni, [&] {
    std::string json;
    Status status = isozone::GetStats(*EnvOf(env).GetFileSystem(), &json);
    if (!status.ok()) return status;
    jbyteArray bytes = ToBytes(jni, json);
    if (bytes != nullptr) jni->SetObjectArrayElement(result, 0, bytes);
    return status;
  });
}

jbyteArray JNICALL CollectGarbage(JNIEnv* jni, jclass /*unused*/, jlong env, jdouble until_free_percent) {
  return Run(jni, [&] { return isozone::CollectGarbage(*EnvOf(env).GetFileSystem(), until_free_percent, {}); });
}

template <typename Function>
JNINativeMethod Method(const char* name, const char* signature, Function function) {
  return {const_cast<char*>(name), const_cast<char*>(signature), reinterpret_cast<void*>(function)};
}

}  // namespace

extern "C" JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* machine, void* /*unused*/) {
  constexpr jint kVersion = JNI_VERSION_1_8;
  JNIEnv* jni = nullptr;
  if (machine->GetEnv(reinterpret_cast<void**>(&jni), kVersion) != JNI_OK) return JNI_ERR;
  jclass native = jni->FindClass("org/isozone/Native");
  if (native == nullptr) return JNI_ERR;
  const std::array methods = {
      Method("version", "()[B", &Version),
      Method("format", "([BZ)[B", &Format),
      Method("open", "([B[J)[B", &Open),
      Method("setEnv", "(JJ)V", &SetEnv),
      Method("close", "(J)V", &Close),
      Method("children", "(J[B[[B)[B", &Children),
      Method("statistics", "(J[[B)[B", &Statistics),
      Method("collectGarbage", "(JD)[B", &CollectGarbage),
  };
  const jint registered = jni->RegisterNatives(native, methods.data(), static_cast<jint>(methods.size()));
  return registered == JNI_OK ? kVersion : JNI_ERR;
}
