/* See endpoint.h. */
#include "machine/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"

#define HOST_ROOM 256u

static bool is_port(const char *text, uint16_t *ret_port)
{
	uint64_t value;

	if (!text_parse_u64(text, &value) || value > UINT16_MAX)
		return false;
	*ret_port = (uint16_t)value;
	return true;
}

/* Splits "host:port", "[v6]:port", "port" or "host". A bare IPv6 address has no port. */
static bool split(const char *text, char host[HOST_ROOM], uint16_t *port)
{
	const char *colon = strrchr(text, ':');
	size_t len = strlen(text);
	struct in6_addr six;

	if (is_port(text, port))
		return true;
	if (len && strspn(text, "0123456789") == len)
		return false; /* not a host either, although resolvers accept it */
	if (*text == '[') {
		const char *end = strchr(text, ']');
		if (!end || (end[1] && (end[1] != ':' || !is_port(end + 2, port))))
			return false;
		text++;
		len = (size_t)(end - text);
	} else if (colon && colon == strchr(text, ':')) {
		if (!is_port(colon + 1, port))
			return false;
		len = (size_t)(colon - text);
	} else if (colon && !inet_pton(AF_INET6, text, &six)) {
		return false;
	}
	if (len >= HOST_ROOM)
		return false;
	if (len) {
		memcpy(host, text, len);
		host[len] = '\0';
	}
	return true;
}

static void set_port(struct endpoint *endpoint, uint16_t port)
{
	if (endpoint->address.ss_family == AF_INET)
		((struct sockaddr_in *)&endpoint->address)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)&endpoint->address)->sin6_port = htons(port);
}

static bool take_number(const char *host, struct endpoint *endpoint)
{
	struct sockaddr_in four = { .sin_family = AF_INET };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };

	if (strcmp(host, "localhost") == 0)
		host = "127.0.0.1";
	if (inet_pton(AF_INET, host, &four.sin_addr) == 1) {
		memcpy(&endpoint->address, &four, sizeof(four));
		endpoint->size = sizeof(four);
		return true;
	}
	if (inet_pton(AF_INET6, host, &six.sin6_addr) != 1)
		return false;
	memcpy(&endpoint->address, &six, sizeof(six));
	endpoint->size = sizeof(six);
	return true;
}

#ifdef SPOOR_STATIC
static int resolve(const char *host, int type, struct endpoint *endpoint, struct diag *diag)
{
	(void)type;
	(void)endpoint;
	diag_set(diag, -EHOSTUNREACH, "this spoor is linked statically and resolves no names: '%s'",
		host);
	diag_remedy(diag, "give the address in numbers");
	return -EHOSTUNREACH;
}
#else
static int resolve(const char *host, int type, struct endpoint *endpoint, struct diag *diag)
{
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC, .ai_socktype = type, .ai_flags = AI_ADDRCONFIG
	};
	struct addrinfo *found = NULL;
	int error = getaddrinfo(host, NULL, &hints, &found);

	if (error || !found || found->ai_addrlen > sizeof(endpoint->address)) {
		if (found)
			freeaddrinfo(found);
		return diag_set(diag, -EHOSTUNREACH, "no address is known of '%s': %s", host,
			gai_strerror(error));
	}
	memcpy(&endpoint->address, found->ai_addr, found->ai_addrlen);
	endpoint->size = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}
#endif

void endpoint_describe(struct endpoint *endpoint)
{
	char host[INET6_ADDRSTRLEN] = "?";
	bool six = endpoint->address.ss_family == AF_INET6;
	const struct sockaddr_in *four_address = (const struct sockaddr_in *)&endpoint->address;
	const struct sockaddr_in6 *six_address = (const struct sockaddr_in6 *)&endpoint->address;

	if (six)
		/* has room */
		(void)inet_ntop(AF_INET6, &six_address->sin6_addr, host, sizeof(host));
	else
		/* has room */
		(void)inet_ntop(AF_INET, &four_address->sin_addr, host, sizeof(host));
	text_set(endpoint->text, six ? "[%s]:%u" : "%s:%u", host,
		ntohs(six ? six_address->sin6_port : four_address->sin_port));
}

int endpoint_parse(const char *text, const char *host, uint16_t port, int type,
	struct endpoint *ret_endpoint, struct diag *diag)
{
	struct endpoint endpoint = { 0 };
	char name[HOST_ROOM];

	text_set(name, "%s", host); /* from this module, and short */
	if (!split(text, name, &port)) {
		diag_set(diag, -EINVAL, "'%s' is no address", text);
		diag_remedy(diag, "write HOST:PORT, [IPV6]:PORT or PORT");
		return -EINVAL;
	}
	if (!take_number(name, &endpoint)) {
		int result = resolve(name, type, &endpoint, diag);
		if (result < 0)
			return result;
	}
	set_port(&endpoint, port);
	endpoint_describe(&endpoint);
	*ret_endpoint = endpoint;
	return 0;
}
