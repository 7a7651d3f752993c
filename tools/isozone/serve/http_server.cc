#include "isozone/serve/http_server.h"

#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/file_descriptor.h"
#include "base/thread.h"
#include "device/linux/task_threads.h"

namespace isozone::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long a thread that waits for another machine does not see that the server ends.
constexpr milliseconds kGlance(100);

// Whether `line` is the field Range of a head.
bool IsRange(std::string_view line) {
  constexpr std::string_view kName = "range:";
  return std::ranges::equal(line.substr(0, kName.size()), kName,
                            [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b; });
}

// A connection as the library reads and writes it: with a deadline for each request, with a limit of its head, and
// without the field Range: the library matches that by a recursion whose stack grows with its length, to megabytes.
class Connection final : public httplib::Stream {
 public:
  // After `end`, which may change, nothing is waited for.
  Connection(socket_t socket, const std::atomic<steady_clock::time_point>& end) : socket_(socket), end_of_all_(end) {}

  // Waits at most `time` for the first byte of a request.
  bool HasRequest(milliseconds time) const { return begin_ < end_ || Poll(POLLIN, steady_clock::now() + time); }
  void BeginRequest() {
    head_bytes_ = 0;
    line_.clear();
    given_ = 0;
    deadline_ = steady_clock::now() + std::chrono::seconds(HttpServer::kRequestSeconds);
    answered_by_.reset();
  }

  bool is_readable() const override { return given_ < line_.size() || begin_ < end_ || Poll(POLLIN, deadline_); }
  bool is_writable() const override { return Poll(POLLOUT, deadline_); }

  ssize_t read(char* buffer, size_t size) override {
    if (given_ == line_.size() && !ReadLine()) return -1;
    const size_t taken = std::min(size, line_.size() - given_);
    std::copy_n(&line_[given_], taken, buffer);
    given_ += taken;
    return static_cast<ssize_t>(taken);
  }

  // All of it, or an error. Whoever reads on gets more time, but no more than kAnswerSeconds for an answer.
  ssize_t write(const char* bytes, size_t size) override {
    if (!answered_by_) answered_by_ = steady_clock::now() + std::chrono::seconds(HttpServer::kAnswerSeconds);
    for (size_t done = 0; done < size;) {
      const auto moved_by = steady_clock::now() + std::chrono::seconds(HttpServer::kRequestSeconds);
      if (!Poll(POLLOUT, std::min(moved_by, *answered_by_))) return -1;
      const ssize_t sent = ::send(socket_, bytes + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno != EINTR && errno != EAGAIN) return -1;
      if (sent > 0) done += static_cast<size_t>(sent);
    }
    return static_cast<ssize_t>(size);
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  socket_t socket() const override { return socket_; }

 private:
  // Whether the socket is ready before `deadline`, and before the end of all.
  bool Poll(short events, steady_clock::time_point deadline) const {
    for (;;) {
      const auto left = std::chrono::ceil<milliseconds>(std::min(deadline, end_of_all_.load()) - steady_clock::now());
      const auto pause = std::clamp(left, milliseconds(0), kGlance);
      pollfd polled{socket_, events, 0};
      const int ready = ::poll(&polled, 1, static_cast<int>(pause.count()));
      if (ready > 0) return left.count() > 0;
      if (left <= pause || (ready < 0 && errno != EINTR)) return false;
    }
  }
  // Brings the next line of the head that is not left out.
  bool ReadLine() {
    do {
      line_.clear();
      given_ = 0;
      while (!line_.ends_with('\n')) {
        if (head_bytes_ >= HttpServer::kHeadBytes || (begin_ == end_ && !Fill())) return false;
        line_ += buffer_[begin_++];
        ++head_bytes_;
      }
    } while (head_bytes_ > line_.size() && IsRange(line_));
    return true;
  }
  bool Fill() {
    if (!Poll(POLLIN, deadline_)) return false;
    const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got <= 0) return false;
    begin_ = 0;
    end_ = static_cast<size_t>(got);
    return true;
  }

  const socket_t socket_;
  const std::atomic<steady_clock::time_point>& end_of_all_;
  steady_clock::time_point deadline_ = steady_clock::now();  // of the request
  std::optional<steady_clock::time_point> answered_by_;      // once the answer has begun
  size_t head_bytes_ = 0;                                    // of all lines until now
  std::string line_;                                         // of which the library has `given_` bytes
  size_t given_ = 0;
  std::array<char, 4096> buffer_{};
  size_t begin_ = 0;
  size_t end_ = 0;
};

// Threads beyond one for each connection: they close the connections that are too many.
constexpr size_t kClosingThreads = 4;

class Server final : public HttpServer, private httplib::Server {
 public:
  Server(ListenAddress address, std::vector<std::string> allowed_names, HttpServer::Handler handler)
      : address_(std::move(address)), allowed_names_(std::move(allowed_names)), handler_(std::move(handler)) {
    set_default_headers({{"Cache-Control", "no-store"},
                         {"Content-Security-Policy",
                          "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                          "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
                         {"Cross-Origin-Resource-Policy", "same-origin"},
                         {"Referrer-Policy", "no-referrer"},
                         {"X-Content-Type-Options", "nosniff"}});
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      const HttpReply reply = Answer(request);
      response.status = reply.status;
      if (reply.status == 405) response.set_header("Allow", "GET, HEAD");
      response.set_content(reply.body, reply.type);
      return HandlerResponse::Handled;
    });
  }
  ~Server() override {
    if (!thread_.joinable()) return;
    end_of_all_ = steady_clock::now() + std::chrono::seconds(kFarewellSeconds);
    ending_ = true;
    ::shutdown(listening_.get(), SHUT_RDWR);  // which wakes the thread
    thread_.join();
    threads_.reset();
  }

  Status Begin() {
    ISOZONE_ASSIGN_OR_RETURN(listening_, Listen(address_));
    // Each connection is a file, so that a server which may open no more would never answer.
    if (FileDescriptor(::dup(listening_.get())).get() < 0) return Status::FromErrno(errno, "cannot take connections");
    threads_ = std::make_unique<TaskThreads>("isozone-http", kConnections + kClosingThreads);
    ISOZONE_ASSIGN_OR_RETURN(thread_, StartThread("connections", [this] { TakeConnections(); }));
    return Status::Ok();
  }

  const ListenAddress& address() const override { return address_; }

 private:
  static HttpReply Refuse(int status, std::string why) {
    return {status, "text/plain; charset=utf-8", std::move(why) + "\n"};
  }

  // Whether a page of another site asks. It could not read the answer, but have the server work for it again and again.
  // Who follows a link from there may.
  static bool IsOfAnotherSite(const httplib::Request& request) {
    const std::string site = request.get_header_value("Sec-Fetch-Site");
    return (site == "cross-site" || site == "same-site") && request.get_header_value("Sec-Fetch-Mode") != "navigate";
  }

  HttpReply Answer(const httplib::Request& request) const {
    if (request.get_header_value_count("Host") != 1 ||
        !IsAllowedHost(request.get_header_value("Host"), allowed_names_)) {
      return Refuse(403, "this name is not one of the server's: use its address, or start it with --allow-host NAME");
    }
    if (IsOfAnotherSite(request)) return Refuse(403, "this is not answered to pages of other sites");
    if (request.method != "GET" && request.method != "HEAD") return Refuse(405, "only GET and HEAD are answered");
    HttpRequest plain{request.path, {}};
    for (const auto& [name, value] : request.params) plain.parameters.emplace(name, value);
    try {
      return handler_(plain);
    } catch (const std::exception& error) {
      return Refuse(500, error.what());
    }
  }

  // Errors are of a single connection or of a moment, as where this process may open no more files. The library would
  // then wait for a descriptor for ever, and would not see that the server ends.
  void TakeConnections() {
    while (!ending_) {
      auto socket = std::make_shared<FileDescriptor>(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (socket->get() >= 0) {
        threads_->Add([this, socket = std::move(socket)] { ServeAndShut(socket->get()); });
      } else if (!ending_) {
        std::this_thread::sleep_for(kGlance);
      }
    }
  }

  void ServeAndShut(socket_t socket) {
    const size_t others = connections_.fetch_add(1);
    if (others < kConnections) Serve(socket);
    connections_.fetch_sub(1);
    ::shutdown(socket, SHUT_RDWR);
  }

  void Serve(socket_t socket) {
    Connection connection(socket, end_of_all_);
    bool last = false;
    while (!last && AwaitRequest(connection)) {
      connection.BeginRequest();
      // The library answers some errors before it tells of the head. What follows then may be a body.
      last = true;
      bool closed = false;
      const bool ok = process_request(connection, false, closed, [&](httplib::Request& request) {
        // To compress an answer would cost more than to send it.
        request.headers.erase("Accept-Encoding");
        const bool has_body = request.has_header("Transfer-Encoding") || request.has_header("Content-Length");
        last = has_body || (request.method != "GET" && request.method != "HEAD");
      });
      if (!ok || closed) return;
    }
  }

  bool AwaitRequest(const Connection& connection) const {
    const auto until = steady_clock::now() + std::chrono::seconds(kIdleSeconds);
    while (!ending_ && steady_clock::now() < until) {
      if (connection.HasRequest(kGlance)) return true;
    }
    return false;
  }

  ListenAddress address_;
  const std::vector<std::string> allowed_names_;
  const HttpServer::Handler handler_;
  FileDescriptor listening_;
  std::unique_ptr<TaskThreads> threads_;  // that serve; fewer where the system has no more
  std::thread thread_;                    // that takes connections
  std::atomic<bool> ending_{false};
  std::atomic<steady_clock::time_point> end_of_all_{steady_clock::time_point::max()};
  std::atomic<size_t> connections_{0};
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::Start(ListenAddress address, std::vector<std::string> allowed_names,
                                                      Handler handler) {
  auto server = std::make_unique<Server>(std::move(address), std::move(allowed_names), std::move(handler));
  ISOZONE_RETURN_IF_ERROR(server->Begin());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace isozone::cli
