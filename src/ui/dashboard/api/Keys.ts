/** API keys of an agent. */
import { infiniteQueryOptions } from "@tanstack/react-query"
import { call, firstPage } from "./Client.ts"

export const permissions = ["chat", "retrieve", "ingest", "usage.read", "trace_read"] as const
export type Permission = (typeof permissions)[number]

/** At most `requests` in any `window` of seconds. */
export interface RateLimit {
  readonly requests: number
  readonly window: number
}

export interface Key {
  readonly id: string
  readonly name: string
  readonly prefix: string
  readonly permissions: ReadonlyArray<string>
  readonly allowedOrigins: ReadonlyArray<string>
  readonly status: "ACTIVE" | "INACTIVE" | "REVOKED" | "EXPIRED"
  readonly expiresAt: string | null
  /** Null: what the server sets for all keys. */
  readonly rateLimit: RateLimit | null
  readonly lastUsedAt: string | null
  readonly version: number
  readonly createdAt: string
}

interface KeyPage {
  readonly keys: ReadonlyArray<Key>
  readonly nextCursor: string | null
}

export const keys = (agentId: string) =>
  infiniteQueryOptions({
    queryKey: ["agents", agentId, "keys"],
    queryFn: ({ pageParam, signal }) =>
      call<KeyPage>("GET", `/api/agents/${agentId}/keys`, {
        query: { limit: 50, cursor: pageParam },
        signal
      }),
    initialPageParam: firstPage(),
    getNextPageParam: ({ nextCursor }) => nextCursor
  })

export interface NewKey {
  readonly name: string
  readonly permissions: ReadonlyArray<string>
  readonly allowedOrigins?: ReadonlyArray<string>
  readonly expiresAt?: string
  readonly rateLimit?: RateLimit
}

/** The answer is the only one that holds the secret. */
export const createKey = (agentId: string, body: NewKey) =>
  call<{ readonly key: Key; readonly secret: string }>("POST", `/api/agents/${agentId}/keys`, { body })

export const setActive = ({ id, version }: Key, active: boolean) =>
  call("PATCH", `/api/keys/${id}`, { body: { active }, version })

/** Null takes the key's own limit away. */
export const setRateLimit = ({ id, version }: Key, rateLimit: RateLimit | null) =>
  call("PATCH", `/api/keys/${id}`, { body: { rateLimit }, version })

export const revokeKey = (id: string) => call("DELETE", `/api/keys/${id}`)
