/*
 * A small HTTP service in C++ that can be observed while it runs: an activity and two events for
 * each request, counters by status, the distribution of durations.
 *
 *   service [PORT]            0 or nothing: any free port; prints "listening on PORT"
 *
 *   GET /                     a greeting
 *   GET /order/COUNT          takes an order: an event with the items, a second activity for the payment
 *   GET /slow                 waits 20 ms for a lock that all slow requests need
 *
 * SIGTERM and SIGINT end it. Attach while it runs, without preparation:
 *
 *   dotnet-trace collect -p PID --providers Service
 *   dotnet-counters monitor -p PID --counters Service.Requests
 *   spoor counters -p PID
 *   spoor trace -p PID --provider Service
 *   spoor diagnose -p PID
 */
#include <arpa/inet.h>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <spoor/spoor.hpp>

SPOOR_PROVIDER(service, "Service")
SPOOR_EVENT_NAMED(service, request_start, "RequestStart", 1, 0, SPOOR_INFO, SPOOR_OPCODE_START, 0x1,
	(text, method), (text, path))
SPOOR_EVENT_NAMED(service, request_stop, "RequestStop", 2, 0, SPOOR_INFO, SPOOR_OPCODE_STOP, 0x1,
	(u32, status), (f64, milliseconds))
SPOOR_EVENT_NAMED(service, order, "Order", 3, 0, SPOOR_INFO, SPOOR_OPCODE_INFO, 0x2, (u32, number),
	(u32_array, items))

namespace
{

constexpr unsigned workers = 4;
std::atomic<bool> ended{ false };

struct meters {
	spoor::meter meter{ "Service.Requests", "1.0" };
	spoor::counter ok{ meter, "requests", "{request}", { { "status", "200" } } };
	spoor::counter missing{ meter, "requests", "{request}", { { "status", "404" } } };
	spoor::up_down_counter active{ meter, "active", "{request}" };
	spoor::histogram duration{ meter, "duration", "s" };
};

class server
{
      public:
	explicit server(int listener) : listener_(listener)
	{
	}

	/* Serves one connection after the other until the service ends. */
	void serve()
	{
		while (!ended) {
			pollfd watch{ listener_, POLLIN, 0 };
			if (poll(&watch, 1, 100) <= 0)
				continue;
			int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
			if (connection < 0)
				continue;
			timeval limit{ 5, 0 };
			(void)setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit,
				sizeof(limit));
			(void)setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit,
				sizeof(limit));
			answer(connection);
			close(connection);
		}
	}

      private:
	static std::string_view header(std::string_view head, std::string_view name)
	{
		auto at = head.find(name);
		if (at == head.npos)
			return {};
		head.remove_prefix(at + name.size());
		return head.substr(0, head.find("\r\n"));
	}

	void answer(int connection)
	{
		char buffer[8192];
		std::size_t size = 0;
		std::string_view head;

		while (size < sizeof(buffer) && head.find("\r\n\r\n") == head.npos) {
			ssize_t n = recv(connection, buffer + size, sizeof(buffer) - size, 0);
			if (n <= 0)
				return;
			size += static_cast<std::size_t>(n);
			head = { buffer, size };
		}
		auto method = head.substr(0, head.find(' '));
		auto rest = head.substr(method.size() < head.size() ? method.size() + 1 : 0);
		auto path = rest.substr(0, rest.find(' '));
		std::string parent(header(head, "\r\ntraceparent: "));
		handle(connection, method, path, parent.empty() ? nullptr : parent.c_str());
	}

	void handle(int connection, std::string_view method, std::string_view path,
		const char *parent)
	{
		auto from = spoor_now_ns();
		/* The activity, the time and the number of active requests end with this block. */
		spoor::activity activity("Request", parent);
		spoor::in_progress active(meters_.active);
		spoor::timed timed(meters_.duration);

		service_request_start(method, path);
		std::optional<std::string> body = content(path);
		(body ? meters_.ok : meters_.missing).add();
		std::string answer = body ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 404 Not Found\r\n";
		answer += "Content-Length: " + std::to_string(body ? body->size() : 0) +
			  "\r\nConnection: close\r\n\r\n" + body.value_or("");
		std::string_view left = answer;
		while (!left.empty()) {
			ssize_t n = send(connection, left.data(), left.size(), MSG_NOSIGNAL);
			if (n <= 0)
				break;
			left.remove_prefix(static_cast<std::size_t>(n));
		}
		service_request_stop(body ? 200u : 404u,
			static_cast<double>(spoor_now_ns() - from) / 1e6);
	}

	std::optional<std::string> content(std::string_view path)
	{
		constexpr std::string_view order = "/order/";

		if (path == "/")
			return "Hello.\n";
		if (path == "/slow")
			return slow();
		if (path.substr(0, order.size()) == order)
			return take_order(path.substr(order.size()));
		return std::nullopt;
	}

	std::string slow()
	{
		std::lock_guard<std::mutex> guard(slow_);
		std::this_thread::sleep_for(std::chrono::milliseconds(20));
		return "Done.\n";
	}

	std::optional<std::string> take_order(std::string_view text)
	{
		std::uint32_t count = 0;
		auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
		if (error != std::errc{} || end != text.data() + text.size() || count > 1000)
			return std::nullopt;
		spoor::activity payment("Payment");
		std::vector<std::uint32_t> items(count);
		for (std::uint32_t i = 0; i < count; i++)
			items[i] = i + 1;
		auto number = ++orders_;
		service_order(number, items);
		return "Order " + std::to_string(number) + ".\n";
	}

	int listener_;
	meters meters_;
	std::mutex slow_;
	std::atomic<std::uint32_t> orders_{ 0 };
};

void end(int)
{
	ended = true;
}

int listen_on(std::uint16_t port)
{
	sockaddr_in address{};
	socklen_t size = sizeof(address);
	int on = 1;

	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = htons(port);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
		bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof(address)) ||
		listen(listener, 128) ||
		getsockname(listener, reinterpret_cast<sockaddr *>(&address), &size)) {
		std::perror("service");
		return -1;
	}
	std::printf("listening on %u\n", ntohs(address.sin_port));
	std::fflush(stdout);
	return listener;
}

} // namespace

int main(int count, char **arguments)
{
	spoor::library library;
	spoor::registration registration(service);

	if (library.result() || registration.result()) {
		std::fprintf(stderr, "service: libspoor does not start: error %d\n",
			library.result() ? library.result() : registration.result());
		return 1;
	}
	std::signal(SIGTERM, end);
	std::signal(SIGINT, end);
	int port = count > 1 ? std::atoi(arguments[1]) : 0;
	if (port < 0 || port > 65535) {
		std::fprintf(stderr, "service [PORT]\n");
		return 2;
	}
	int listener = listen_on(static_cast<std::uint16_t>(port));
	if (listener < 0)
		return 1;
	server server(listener);
	std::vector<std::thread> threads;
	for (unsigned i = 0; i < workers; i++)
		threads.emplace_back([&server] { server.serve(); });
	for (auto &thread : threads)
		thread.join();
	close(listener);
	return 0;
}
