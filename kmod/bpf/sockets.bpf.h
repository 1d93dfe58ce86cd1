/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sockets.bpf.h - what a system call on a socket is named after: its peer
 *
 * That is the address in the call's own arguments (connect, sendto, sendmsg), or else the address
 * that the socket is connected to. A socket without either is named after its own address, and
 * that is written after it: tcp:0.0.0.0:80 (local). Two local sockets that are connected and have
 * no address (socketpair(2)) are one file with one name: socketpair:[77,78]. Others have no name
 * here.
 *
 * The peer is part of what has been told of a descriptor (files.bpf.h). So a socket is told again
 * once it is connected, and a datagram's address wherever it is another one than before.
 */
#ifndef PEM_SOCKETS_BPF_H
#define PEM_SOCKETS_BPF_H

#define PEM_AF_UNIX 1u
#define PEM_AF_INET 2u
#define PEM_AF_INET6 10u
#define PEM_PROTOCOL_TCP 6u
#define PEM_PROTOCOL_UDP 17u
#define PEM_UNIX_BYTES 108u /* of a path */

/* What was read of a socket, or of an address in the program's memory. */
struct pem_address {
	uint16_t family;
	uint16_t port; /* in the host's order */
	uint32_t ipv4; /* this and the next in the network's order */
	uint64_t ipv6[2];
};

/* msghdr, up to the bytes of the name */
struct pem_user_message {
	uint64_t name;
	uint32_t name_bytes;
};

/* The address in the arguments of a call, if it sends to or connects to one. */
PEM_INLINE void pem_find_address(struct pem_kevent *e, const struct pt_regs *regs, uint64_t number)
{
	struct pem_user_message message;

	if (number == pem_config.address_call[PEM_KCALL_CONNECT]) {
		e->address = PT_REGS_PARM2_SYSCALL(regs);
		e->address_bytes = (uint32_t)PT_REGS_PARM3_SYSCALL(regs);
	} else if (number == pem_config.address_call[PEM_KCALL_SENDTO]) {
		e->address = PT_REGS_PARM5_SYSCALL(regs);
		e->address_bytes = 0; /* libbpf 1.1 gives no sixth argument */
	} else if (number == pem_config.address_call[PEM_KCALL_SENDMSG] &&
		   !bpf_probe_read_user(&message, sizeof(message),
					(const void *)PT_REGS_PARM2_SYSCALL(regs))) {
		e->address = message.name;
		e->address_bytes = message.name_bytes;
	}
}

/* The peer of a socket, or with 'local' its own address. Both of Internet addresses alone. */
PEM_INLINE void pem_read_address(struct sock *sk, bool local, struct pem_address *to)
{
	to->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (local) {
		to->port = BPF_CORE_READ(sk, __sk_common.skc_num);
		to->ipv4 = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
	} else {
		to->port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
		to->ipv4 = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	}
	if (to->family != PEM_AF_INET6 || !bpf_core_field_exists(sk->__sk_common.skc_v6_daddr))
		return;
	if (local)
		bpf_core_read(to->ipv6, sizeof(to->ipv6), &sk->__sk_common.skc_v6_rcv_saddr);
	else
		bpf_core_read(to->ipv6, sizeof(to->ipv6), &sk->__sk_common.skc_v6_daddr);
}

/* Read an address in the program's memory: sockaddr_in and sockaddr_in6 begin alike. */
PEM_INLINE bool pem_read_given(uint64_t from, struct pem_address *to)
{
	const uint8_t *bytes = (const uint8_t *)from;

	if (!from || bpf_probe_read_user(to, 8, bytes))
		return false;
	to->port = __builtin_bswap16(to->port);
	return to->family != PEM_AF_INET6 ||
	       !bpf_probe_read_user(to->ipv6, sizeof(to->ipv6), bytes + 8);
}

/*
 * Find the socket of a file and the address that a call on it names. Returns a number that differs
 * where the name would.
 */
PEM_INLINE uint64_t pem_find_peer(struct pem_kevent *e, struct file *file,
				  const struct pt_regs *regs, uint64_t number)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct pem_address a = {0};
	struct sock *sk = BPF_CORE_READ(socket, sk);
	uint64_t what = 0;

	e->sock = sk;
	pem_find_address(e, regs, number);
	if (!e->address) {
		pem_read_address(sk, false, &a);
		if (a.family == PEM_AF_UNIX && bpf_core_type_exists(struct unix_sock))
			what = pem_mix((uint64_t)BPF_CORE_READ((struct unix_sock *)sk, peer),
				       (uint64_t)BPF_CORE_READ((struct unix_sock *)sk, addr));
		else if (!a.port)
			pem_read_address(sk, true, &a);
	} else if (!pem_read_given(e->address, &a) || a.family == PEM_AF_UNIX) {
		/* Paths may differ in any byte: each such call is told. */
		what = bpf_ktime_get_ns();
	}
	what = pem_mix(what, (uint64_t)a.ipv4 << 32 | (uint32_t)a.port << 16 | a.family);
	return pem_mix(pem_mix(what, a.ipv6[0]), a.ipv6[1]);
}

/* --- names --- */

static const char pem_tcp_text[] SEC(".rodata.texts") = "tcp";
static const char pem_udp_text[] SEC(".rodata.texts") = "udp";
static const char pem_inet_text[] SEC(".rodata.texts") = "ip";
static const char pem_peer_text[] SEC(".rodata.texts") = "";
static const char pem_local_text[] SEC(".rodata.texts") = " (local)";
static const char pem_pair_text[] SEC(".rodata.texts") = "socketpair:[%lu,%lu]";
static const char pem_unix_text[] SEC(".rodata.texts") = "unix:";
static const char pem_ipv4_text[] SEC(".rodata.texts") = "%s:%pI4:%u%s";
static const char pem_ipv6_text[] SEC(".rodata.texts") = "%s:[%pI6]:%u%s";

/* ::ffff:0.0.0.0 to ::ffff:255.255.255.255 are the addresses of version 4. */
PEM_INLINE bool pem_is_mapped(const struct pem_address *a)
{
	return !a->ipv6[0] && (uint32_t)a->ipv6[1] == __builtin_bswap32(0xffff);
}

PEM_INLINE uint32_t pem_put_inet(uint8_t *to, struct sock *sk, struct pem_address *a, bool local)
{
	uint16_t protocol = BPF_CORE_READ(sk, sk_protocol);
	const char *name = protocol == PEM_PROTOCOL_TCP   ? pem_tcp_text
			   : protocol == PEM_PROTOCOL_UDP ? pem_udp_text
							  : pem_inet_text;
	__u64 values[4] = {(__u64)name, (__u64)&a->ipv4, a->port,
			   (__u64)(local ? pem_local_text : pem_peer_text)};
	bool is_long = a->family == PEM_AF_INET6 && !pem_is_mapped(a);

	if (a->family == PEM_AF_INET6 && !is_long)
		a->ipv4 = (uint32_t)(a->ipv6[1] >> 32);
	if (is_long) {
		values[1] = (__u64)a->ipv6;
		bpf_snprintf((char *)to, PEM_PATH_BYTES, pem_ipv6_text, values, sizeof(values));
	} else {
		bpf_snprintf((char *)to, PEM_PATH_BYTES, pem_ipv4_text, values, sizeof(values));
	}
	return 1;
}

/*
 * Write the name of a local socket. bytes: of the name, with its family; 0: not known, and then it
 * has to be a path. Returns 0: it has none.
 */
PEM_INLINE uint32_t pem_put_unix(uint8_t *to, uint64_t path, uint32_t bytes, bool is_user,
				 bool local)
{
	const uint32_t at = sizeof(pem_unix_text) - 1;
	uint32_t copied = bytes - 2;
	long read;

	if (bytes && bytes <= 2)
		return 0;
	read = is_user ? bpf_probe_read_user_str(to + at, PEM_UNIX_BYTES + 1, (const void *)path)
		       : bpf_probe_read_kernel_str(to + at, PEM_UNIX_BYTES + 1, (const void *)path);
	if (read > 1) {
		/* A path need not end in a NUL. */
		if (!bytes || copied > read - 1)
			copied = read - 1;
	} else {
		/* An abstract name begins with a NUL, which is shown as '@'. */
		if (bytes <= 3 || copied > PEM_UNIX_BYTES)
			return 0;
		if (is_user ? bpf_probe_read_user(to + at, copied & 127, (const void *)path)
			    : bpf_probe_read_kernel(to + at, copied & 127, (const void *)path))
			return 0;
		to[at] = '@';
	}
	bpf_probe_read_kernel(to, at, pem_unix_text);
	to[at + (copied & 127)] = 0;
	if (local)
		bpf_probe_read_kernel(to + at + (copied & 127), sizeof(pem_local_text),
				      pem_local_text);
	return 1;
}

/* The name that a local socket has itself. */
PEM_INLINE uint32_t pem_put_bound(uint8_t *to, struct unix_sock *sk, bool local)
{
	struct unix_address *address = BPF_CORE_READ(sk, addr);

	if (!address)
		return 0;
	return pem_put_unix(
		to, (uint64_t)address + bpf_core_field_offset(struct unix_address, name) + 2,
		(uint32_t)BPF_CORE_READ(address, len), false, local);
}

/* The inode number of a socket; 0: no descriptor leads to it any more. */
PEM_INLINE uint64_t pem_socket_inode(struct sock *sk)
{
	return BPF_CORE_READ(sk, sk_socket, file, f_inode, i_ino);
}

/*
 * Write the name of two sockets that have no addresses, by the inode numbers of both. Returns 1, or
 * 0: one has no descriptor any more. A global function: see pem_write_path.
 */
__attribute__((noinline)) uint32_t pem_write_pair(struct pem_path_field *field, uint64_t socket,
						  uint64_t peer)
{
	uint64_t one = pem_socket_inode((struct sock *)socket);
	uint64_t other = pem_socket_inode((struct sock *)peer);
	__u64 values[2] = {one < other ? one : other, one < other ? other : one};

	if (!field || !one || !other)
		return 0;
	bpf_snprintf((char *)field->text, PEM_PATH_BYTES, pem_pair_text, values, sizeof(values));
	return 1;
}

/*
 * Write the name of a socket. address: in the program's memory; 0: none. Returns 1, or 0: it has no
 * name. A global function: see pem_write_path.
 */
__attribute__((noinline)) uint32_t pem_write_peer(struct pem_path_field *field, uint64_t socket,
						  uint64_t address, uint32_t address_bytes)
{
	struct sock *sk = (struct sock *)socket;
	struct pem_address a = {0}, given = {0};
	struct unix_sock *peer;

	if (!field || !sk)
		return 0;
	pem_read_address(sk, false, &a);
	/* TCP takes no address with data. */
	if (a.port && BPF_CORE_READ(sk, sk_protocol) == PEM_PROTOCOL_TCP)
		address = 0;
	if (address) {
		/* The program has not touched that memory yet: the name is unknown. */
		if (!pem_read_given(address, &given))
			return 0;
		if (given.family == PEM_AF_UNIX)
			return pem_put_unix(field->text, address + 2, address_bytes, true, false);
		a = given;
	}
	if (a.family == PEM_AF_UNIX) {
		if (!bpf_core_type_exists(struct unix_sock))
			return 0;
		peer = (struct unix_sock *)BPF_CORE_READ((struct unix_sock *)sk, peer);
		if (peer && pem_put_bound(field->text, peer, false))
			return 1;
		if (pem_put_bound(field->text, (struct unix_sock *)sk, true))
			return 1;
		return peer ? pem_write_pair(field, socket, (uint64_t)peer) : 0;
	}
	if (a.family != PEM_AF_INET && a.family != PEM_AF_INET6)
		return 0;
	if (a.port)
		return pem_put_inet(field->text, sk, &a, false);
	pem_read_address(sk, true, &a);
	return a.port ? pem_put_inet(field->text, sk, &a, true) : 0;
}

#endif
