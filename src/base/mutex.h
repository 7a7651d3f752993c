// Mutex, SharedMutex and CondVar with clang thread-safety annotations: -Wthread-safety proves that each
// ISOZONE_GUARDED_BY field is touched only under its lock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#if defined(__clang__)
#define ISOZONE_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define ISOZONE_THREAD_ANNOTATION(x)
#endif

#define ISOZONE_CAPABILITY(x) ISOZONE_THREAD_ANNOTATION(capability(x))
#define ISOZONE_SCOPED_CAPABILITY ISOZONE_THREAD_ANNOTATION(scoped_lockable)
#define ISOZONE_GUARDED_BY(x) ISOZONE_THREAD_ANNOTATION(guarded_by(x))
#define ISOZONE_PT_GUARDED_BY(x) ISOZONE_THREAD_ANNOTATION(pt_guarded_by(x))
#define ISOZONE_REQUIRES(...) ISOZONE_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define ISOZONE_EXCLUDES(...) ISOZONE_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define ISOZONE_ACQUIRE(...) ISOZONE_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define ISOZONE_ACQUIRE_SHARED(...) ISOZONE_THREAD_ANNOTATION(acquire_shared_capability(__VA_ARGS__))
#define ISOZONE_RELEASE(...) ISOZONE_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define ISOZONE_RELEASE_GENERIC(...) ISOZONE_THREAD_ANNOTATION(release_generic_capability(__VA_ARGS__))
#define ISOZONE_ASSERT_CAPABILITY(x) ISOZONE_THREAD_ANNOTATION(assert_capability(x))
#define ISOZONE_RETURN_CAPABILITY(x) ISOZONE_THREAD_ANNOTATION(lock_returned(x))
#define ISOZONE_NO_THREAD_SAFETY_ANALYSIS ISOZONE_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace isozone {

class ISOZONE_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void Lock() ISOZONE_ACQUIRE() { mu_.lock(); }
  void Unlock() ISOZONE_RELEASE() { mu_.unlock(); }
  // Tells the analysis that the caller holds this mutex where the analysis cannot prove it (inside a predicate).
  void AssertHeld() const ISOZONE_ASSERT_CAPABILITY(this) {}

 private:
  friend class CondVar;
  std::mutex mu_;
};

class ISOZONE_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mu) ISOZONE_ACQUIRE(mu) : mu_(mu) { mu_.Lock(); }
  ~MutexLock() ISOZONE_RELEASE() { mu_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

// Gives up a held mutex for a scope (device I/O, a callback) and takes it again at its end.
class ISOZONE_SCOPED_CAPABILITY MutexUnlock {
 public:
  explicit MutexUnlock(Mutex& mu) ISOZONE_RELEASE(mu) : mu_(mu) { mu_.Unlock(); }
  ~MutexUnlock() ISOZONE_RELEASE() { mu_.Lock(); }  // in clang's notation, this releases the release: it locks again
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;

 private:
  Mutex& mu_;
};

class ISOZONE_CAPABILITY("shared mutex") SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;
  void Lock() ISOZONE_ACQUIRE() { mu_.lock(); }
  void Unlock() ISOZONE_RELEASE() { mu_.unlock(); }
  void LockShared() ISOZONE_ACQUIRE_SHARED() { mu_.lock_shared(); }
  void UnlockShared() ISOZONE_RELEASE_GENERIC() { mu_.unlock_shared(); }

 private:
  std::shared_mutex mu_;
};

class ISOZONE_SCOPED_CAPABILITY ExclusiveLock {
 public:
  explicit ExclusiveLock(SharedMutex& mu) ISOZONE_ACQUIRE(mu) : mu_(mu) { mu_.Lock(); }
  ~ExclusiveLock() ISOZONE_RELEASE() { mu_.Unlock(); }
  ExclusiveLock(const ExclusiveLock&) = delete;
  ExclusiveLock& operator=(const ExclusiveLock&) = delete;

 private:
  SharedMutex& mu_;
};

class ISOZONE_SCOPED_CAPABILITY SharedLock {
 public:
  explicit SharedLock(SharedMutex& mu) ISOZONE_ACQUIRE_SHARED(mu) : mu_(mu) { mu_.LockShared(); }
  ~SharedLock() ISOZONE_RELEASE_GENERIC() { mu_.UnlockShared(); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  SharedMutex& mu_;
};

// Wait() may wake without a signal; call it in a loop that tests the condition.
class CondVar {
 public:
  void Wait(Mutex& mu) ISOZONE_REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // Waits like Wait, but until `deadline_ns` of MonotonicNs() at the latest.
  void WaitUntil(Mutex& mu, int64_t deadline_ns) ISOZONE_REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline_ns)));
    lock.release();
  }
  void Signal() { cv_.notify_one(); }
  void SignalAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace isozone
