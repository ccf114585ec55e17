/* SPDX-License-Identifier: GPL-2.0-only */
/* Little-endian numbers on disk, as types of their own for sparse. */
#ifndef ACKPROOF_LE_H
#define ACKPROOF_LE_H

#include <endian.h>
#include <linux/types.h>
#include <stdint.h>

#ifdef __CHECKER__
#define LE_FORCE __attribute__((force))
#else
#define LE_FORCE
#endif

static inline uint64_t get_le64(__le64 v)
{
	return le64toh((LE_FORCE uint64_t)v);
}

static inline uint32_t get_le32(__le32 v)
{
	return le32toh((LE_FORCE uint32_t)v);
}

static inline __le64 put_le64(uint64_t v)
{
	return (LE_FORCE __le64)htole64(v);
}

static inline __le32 put_le32(uint32_t v)
{
	return (LE_FORCE __le32)htole32(v);
}

#endif
