/** Node's cryptography: SHA-256 for random secrets, scrypt (RFC 7914) for passwords. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { createHash, randomBytes, scrypt, timingSafeEqual } from "node:crypto"
import { availableParallelism } from "node:os"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import { Credentials, CredentialsBusy } from "../Credentials.ts"

/** Cost of one hash: 2^`log2N` · `r` · 128 bytes of memory, `p` times over. */
export interface Cost {
  readonly log2N: number
  readonly r: number
  readonly p: number
}

/** Recommended by OWASP for 32 MiB per hash. */
const recommended: Cost = { log2N: 15, r: 8, p: 3 }

/**
 * Number of concurrent hashes. libuv has four threads, of which files and DNS need one. A hash takes a processor for
 * 0.2 seconds, and the thread that serves requests needs a processor too.
 */
const concurrentHashes = Math.max(1, Math.min(3, availableParallelism() - 1))
/** Maximum number of concurrent hashes of one owner. */
const concurrentHashesPerOwner = Math.min(2, concurrentHashes)
/** Maximum number of waiting hashes of all owners. */
const maxWaitingHashes = 128
const hashBytes = 32

interface Encoded extends Cost {
  readonly salt: Buffer
  readonly hash: Buffer
}

const encode = ({ log2N, r, p, salt, hash }: Encoded) =>
  `$scrypt$ln=${log2N},r=${r},p=${p}$${salt.toString("base64url")}$${hash.toString("base64url")}`

const decode = (text: string): Encoded | null => {
  const match = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([\w-]+)\$([\w-]+)$/.exec(text)
  if (match === null) return null
  const [, log2N, r, p, salt, hash64] = match
  const hash = Buffer.from(hash64 ?? "", "base64url")
  if (hash.length !== hashBytes) return null
  return {
    log2N: Number(log2N),
    r: Number(r),
    p: Number(p),
    salt: Buffer.from(salt ?? "", "base64url"),
    hash
  }
}

// Different keyboards may encode the same accented letter differently.
const bytesOf = (password: Redacted.Redacted) => Buffer.from(Redacted.value(password).normalize("NFKC"))

const derive = (password: Redacted.Redacted, salt: Buffer, { log2N, r, p }: Cost) =>
  Effect.async<Buffer>((resume) => {
    const options = { N: 2 ** log2N, r, p, maxmem: 256 * 2 ** log2N * r }
    scrypt(bytesOf(password), salt, hashBytes, options, (error, hash) =>
      resume(error === null || error === undefined ? Effect.succeed(hash) : Effect.die(error))
    )
  })

const make = (cost: Cost) =>
  Effect.sync(() => {
    const limiter = new FairLimiter({
      name: "password-hashing",
      permits: concurrentHashes,
      maxPermitsPerOwner: concurrentHashesPerOwner,
      maxWaiting: maxWaitingHashes
    })
    /** A running hash cannot be stopped, so its permit is released only when it ends. */
    const withPermit = (owner: string, work: Effect.Effect<Buffer>) =>
      limiter
        .withPermit(owner)(Effect.uninterruptible(work))
        .pipe(Effect.mapError(() => new CredentialsBusy()))

    /** Compared with the password if there is no such user, so that the check takes as long. */
    const dummy: Encoded = { ...cost, salt: randomBytes(16), hash: randomBytes(hashBytes) }

    const hashPassword = (password: Redacted.Redacted, owner: string) =>
      Effect.suspend(() => {
        const salt = randomBytes(16)
        return withPermit(owner, derive(password, salt, cost)).pipe(
          Effect.map((hash) => encode({ ...cost, salt, hash })),
          Effect.withSpan("Credentials.hashPassword")
        )
      })

    const verifyPassword = (password: Redacted.Redacted, text: string | null, owner: string) => {
      const known = text === null ? null : decode(text)
      const reference = known ?? dummy
      return withPermit(owner, derive(password, reference.salt, reference)).pipe(
        Effect.map((hash) => timingSafeEqual(hash, reference.hash) && known !== null),
        Effect.withSpan("Credentials.verifyPassword")
      )
    }

    return Credentials.of({
      token: Effect.sync(() => randomBytes(32).toString("base64url")),
      fingerprint: (secret) =>
        Effect.sync(() => createHash("sha256").update(Redacted.value(secret)).digest()),
      hashPassword,
      verifyPassword
    })
  })

/** scrypt with the given cost. Hashes with another cost can still be verified. */
export const layerScrypt = (cost: Cost = recommended): Layer.Layer<Credentials> =>
  Layer.effect(Credentials, make(cost))
