// HttpServer: answers requests that only read, for programs and browsers of this machine.
//
// Limits. At most kConnections connections at a time; one more is closed at once. A connection is closed when a request
// has not arrived as a whole kRequestSeconds after its first byte, when its head is longer than kHeadBytes, when it has
// a body, when nobody reads the answer for kRequestSeconds, and when an answer has not been read as a whole after
// kAnswerSeconds. A connection without a request ends after kIdleSeconds, and all end kFarewellSeconds after the server
// is told to.
// Requests for a part of an answer get the whole. Only GET and HEAD are answered; others get 405.
//
// Whom it answers: see IsAllowedHost. No answer may be read by pages of other sites, be framed by them or be kept;
// their requests get 403, by what the browser says of them (Sec-Fetch-Site).
//
// Thread safety: Start and the destructor belong to one thread. The handler is called by several threads at once.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "isozone/serve/listen_address.h"

namespace isozone::cli {

struct HttpRequest {
  std::string path;                               // "/metrics", decoded
  std::map<std::string, std::string> parameters;  // of the query, decoded; of equal names the first
};

struct HttpReply {
  int status = 200;
  std::string type;  // "text/plain; charset=utf-8"
  std::string body;
};

class HttpServer {
 public:
  static constexpr size_t kConnections = 32;
  static constexpr size_t kHeadBytes = size_t{16} << 10;
  static constexpr int kRequestSeconds = 5;
  static constexpr int kAnswerSeconds = 30;
  static constexpr int kIdleSeconds = 15;
  static constexpr int kFarewellSeconds = 1;

  using Handler = std::function<HttpReply(const HttpRequest& request)>;
  // Starts a server that answers from now on. The errors are those of Listen.
  static Result<std::unique_ptr<HttpServer>> Start(ListenAddress address, std::vector<std::string> allowed_names,
                                                   Handler handler);
  // Takes no more requests. Returns when those under way are answered, or whoever made them has had kFarewellSeconds.
  // Waits for calls of the handler.
  virtual ~HttpServer() = default;

  // Returns the address, with the port that it really has.
  virtual const ListenAddress& address() const = 0;
};

}  // namespace isozone::cli
