/** API keys of an agent. */
import type { CanonicalPermission } from "../../../domain/accounts/Access.ts"
import type { ApiKey, CreateAgentKey, PatchKey } from "../../../domain/accounts/ApiKey.ts"
import type { RateLimit as Limit } from "../../../domain/accounts/RateLimit.ts"
import type { KeyPage, MadeKey } from "../../../http/hosted/accounts/KeysApi.ts"
import { call, pagesOf } from "./Client.ts"

/** Permissions offered for a key: without `skill_fetch` and `*`. */
export type OfferedPermission = Exclude<CanonicalPermission, "skill_fetch" | "*">
export type RateLimit = typeof Limit.Encoded
export type Key = typeof ApiKey.Encoded

export const keys = (agentId: string) =>
  pagesOf<typeof KeyPage.Encoded>(["agents", agentId, "keys"], `/api/agents/${agentId}/keys`, { limit: 50 })

/** Only this answer contains the secret. */
export const createKey = (agentId: string, body: typeof CreateAgentKey.Encoded) =>
  call<typeof MadeKey.Encoded, typeof CreateAgentKey.Encoded>("POST", `/api/agents/${agentId}/keys`, { body })

export const setActive = ({ id, version }: Key, active: boolean) =>
  call<unknown, typeof PatchKey.Encoded>("PATCH", `/api/keys/${id}`, { body: { active }, version })

/** Null removes the limit of the key. */
export const setRateLimit = ({ id, version }: Key, rateLimit: RateLimit | null) =>
  call<unknown, typeof PatchKey.Encoded>("PATCH", `/api/keys/${id}`, { body: { rateLimit }, version })

export const revokeKey = (id: string) => call("DELETE", `/api/keys/${id}`)
