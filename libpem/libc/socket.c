// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * socket.c - sockets, with their events
 *
 * Not here: read and write, which sockets share with files (file.c); sendmmsg and recvmmsg.
 */
#include "libc/next.h"
#include "libc/readable.h"

#include "stubs/libc_io.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* Functions of glibc. Its headers declare them only with _FORTIFY_SOURCE. */
ssize_t __recv_chk(int fd, void *to, size_t count, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *to, size_t count, size_t room, int flags,
		       struct sockaddr *__restrict peer, socklen_t *__restrict bytes);
void __chk_fail(void) __attribute__((noreturn));

/*
 * glibc declares peers as a union of pointers to the addresses of all families. A definition
 * without the union would not match.
 */
#define PEER __SOCKADDR_ARG
#define CONST_PEER __CONST_SOCKADDR_ARG
#define SOCKADDR(peer) ((peer).__sockaddr__)

static int error_of(ssize_t result)
{
	return result < 0 ? errno : 0;
}

PEM_LIBC_EXPORT int socket(int family, int kind, int protocol)
{
	int fd = PEM_LIBC_NEXT(socket)(family, kind, protocol);

	if (!PEM_LIBC_UNWANTED(pem_enabled_socket_create()))
		pem_notify_socket_create(fd, (uint16_t)family, (uint32_t)kind);
	return fd;
}

static uint16_t port_of(const struct sockaddr *peer, socklen_t bytes)
{
	if (peer->sa_family == AF_INET && bytes >= sizeof(struct sockaddr_in))
		return ntohs(((const struct sockaddr_in *)(const void *)peer)->sin_port);
	if (peer->sa_family == AF_INET6 && bytes >= sizeof(struct sockaddr_in6))
		return ntohs(((const struct sockaddr_in6 *)(const void *)peer)->sin6_port);
	return 0;
}

static void connect_begin(int fd, const struct sockaddr *peer, socklen_t bytes)
{
	size_t known = bytes < sizeof(struct sockaddr_in6) ? bytes : sizeof(struct sockaddr_in6);

	if (bytes < sizeof(peer->sa_family) || !pem_libc_readable__memory(peer, known))
		pem_notify_socket_connect_begin(fd, 0, 0);
	else
		pem_notify_socket_connect_begin(fd, peer->sa_family, port_of(peer, bytes));
}

PEM_LIBC_EXPORT int connect(int fd, CONST_PEER peer, socklen_t bytes)
{
	int rc;

	if (PEM_LIBC_UNWANTED(pem_enabled_socket_connect_begin() |
			      pem_enabled_socket_connect_end()))
		return PEM_LIBC_NEXT(connect)(fd, peer, bytes);
	connect_begin(fd, SOCKADDR(peer), bytes);
	rc = PEM_LIBC_NEXT(connect)(fd, peer, bytes);
	pem_notify_socket_connect_end(fd, error_of(rc));
	return rc;
}

PEM_LIBC_EXPORT int listen(int fd, int backlog)
{
	int rc = PEM_LIBC_NEXT(listen)(fd, backlog);

	if (rc == 0 && !PEM_LIBC_UNWANTED(pem_enabled_socket_listen()))
		pem_notify_socket_listen(fd, backlog);
	return rc;
}

static int accept_enabled(void)
{
	return pem_enabled_socket_accept_begin() | pem_enabled_socket_accept_end();
}

PEM_LIBC_EXPORT int accept(int fd, PEER peer, socklen_t *__restrict bytes)
{
	int connection;

	if (PEM_LIBC_UNWANTED(accept_enabled()))
		return PEM_LIBC_NEXT(accept)(fd, peer, bytes);
	pem_notify_socket_accept_begin(fd);
	connection = PEM_LIBC_NEXT(accept)(fd, peer, bytes);
	pem_notify_socket_accept_end(fd, connection, error_of(connection));
	return connection;
}

PEM_LIBC_EXPORT int accept4(int fd, PEER peer, socklen_t *__restrict bytes, int flags)
{
	int connection;

	if (PEM_LIBC_UNWANTED(accept_enabled()))
		return PEM_LIBC_NEXT(accept4)(fd, peer, bytes, flags);
	pem_notify_socket_accept_begin(fd);
	connection = PEM_LIBC_NEXT(accept4)(fd, peer, bytes, flags);
	pem_notify_socket_accept_end(fd, connection, error_of(connection));
	return connection;
}

/* --- messages --- */

static int send_enabled(void)
{
	return pem_enabled_socket_send_begin() | pem_enabled_socket_send_end();
}

static int receive_enabled(void)
{
	return pem_enabled_socket_receive_begin() | pem_enabled_socket_receive_end();
}

static ssize_t send_end(int fd, ssize_t done)
{
	pem_notify_socket_send_end(done, fd, error_of(done));
	return done;
}

static ssize_t receive_end(int fd, ssize_t got)
{
	pem_notify_socket_receive_end(got, fd, error_of(got));
	return got;
}

static uint64_t bytes_of(const struct msghdr *message)
{
	if (!pem_libc_readable__memory(message, sizeof(*message)))
		return 0;
	return pem_libc_readable__parts(message->msg_iov, message->msg_iovlen);
}

PEM_LIBC_EXPORT ssize_t send(int fd, const void *from, size_t count, int flags)
{
	if (PEM_LIBC_UNWANTED(send_enabled()))
		return PEM_LIBC_NEXT(send)(fd, from, count, flags);
	pem_notify_socket_send_begin(count, fd);
	return send_end(fd, PEM_LIBC_NEXT(send)(fd, from, count, flags));
}

PEM_LIBC_EXPORT ssize_t sendto(int fd, const void *from, size_t count, int flags, CONST_PEER peer,
			       socklen_t bytes)
{
	if (PEM_LIBC_UNWANTED(send_enabled()))
		return PEM_LIBC_NEXT(sendto)(fd, from, count, flags, peer, bytes);
	pem_notify_socket_send_begin(count, fd);
	return send_end(fd, PEM_LIBC_NEXT(sendto)(fd, from, count, flags, peer, bytes));
}

PEM_LIBC_EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (PEM_LIBC_UNWANTED(send_enabled()))
		return PEM_LIBC_NEXT(sendmsg)(fd, message, flags);
	pem_notify_socket_send_begin(bytes_of(message), fd);
	return send_end(fd, PEM_LIBC_NEXT(sendmsg)(fd, message, flags));
}

PEM_LIBC_EXPORT ssize_t recv(int fd, void *to, size_t count, int flags)
{
	if (PEM_LIBC_UNWANTED(receive_enabled()))
		return PEM_LIBC_NEXT(recv)(fd, to, count, flags);
	pem_notify_socket_receive_begin(count, fd);
	return receive_end(fd, PEM_LIBC_NEXT(recv)(fd, to, count, flags));
}

PEM_LIBC_EXPORT ssize_t __recv_chk(int fd, void *to, size_t count, size_t room, int flags)
{
	if (count > room)
		__chk_fail();
	if (PEM_LIBC_UNWANTED(receive_enabled()))
		return PEM_LIBC_NEXT(recv)(fd, to, count, flags);
	pem_notify_socket_receive_begin(count, fd);
	return receive_end(fd, PEM_LIBC_NEXT(recv)(fd, to, count, flags));
}

PEM_LIBC_EXPORT ssize_t recvfrom(int fd, void *__restrict to, size_t count, int flags, PEER peer,
				 socklen_t *__restrict bytes)
{
	if (PEM_LIBC_UNWANTED(receive_enabled()))
		return PEM_LIBC_NEXT(recvfrom)(fd, to, count, flags, peer, bytes);
	pem_notify_socket_receive_begin(count, fd);
	return receive_end(fd, PEM_LIBC_NEXT(recvfrom)(fd, to, count, flags, peer, bytes));
}

PEM_LIBC_EXPORT ssize_t __recvfrom_chk(int fd, void *to, size_t count, size_t room, int flags,
				       struct sockaddr *__restrict peer,
				       socklen_t *__restrict bytes)
{
	if (count > room)
		__chk_fail();
	if (PEM_LIBC_UNWANTED(receive_enabled()))
		return PEM_LIBC_NEXT(recvfrom)(fd, to, count, flags, peer, bytes);
	pem_notify_socket_receive_begin(count, fd);
	return receive_end(fd, PEM_LIBC_NEXT(recvfrom)(fd, to, count, flags, peer, bytes));
}

PEM_LIBC_EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	if (PEM_LIBC_UNWANTED(receive_enabled()))
		return PEM_LIBC_NEXT(recvmsg)(fd, message, flags);
	pem_notify_socket_receive_begin(bytes_of(message), fd);
	return receive_end(fd, PEM_LIBC_NEXT(recvmsg)(fd, message, flags));
}
