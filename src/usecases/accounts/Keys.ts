/** API keys: create, list without secrets, change, revoke. */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { Credentials } from "../../capabilities/Credentials.ts"
import { KeyStore } from "../../capabilities/KeyStore.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { CreateAgentKey, CreateOrgKey, PatchKey } from "../../domain/accounts/ApiKey.ts"
import { widgetPrefix } from "../../domain/agents/Widget.ts"
import { Conflict, invalidField, noSuch, orNoSuch } from "../../domain/Errors.ts"
import { type AgentId, type KeyId, newId } from "../../domain/Ids.ts"
import { outdated } from "../../domain/Version.ts"
import { AgentStore } from "../../store/agents/Agents.ts"
import { ApiKeyStore, type KeyChanges, type NewKey } from "../../store/accounts/ApiKeys.ts"
import type { PageRequest } from "../../store/accounts/Tenants.ts"

/** Prefix of every secret. */
const secretPrefix = "spk_"
/** Characters of the secret that stay visible. */
export const prefixLength = 12

/** VALIDATION_ERROR for an `expiresAt` in the past. */
export const requireFutureExpiry = Effect.fn(function* (expiresAt: DateTime.Utc | null | undefined) {
  if (expiresAt === null || expiresAt === undefined) return
  const now = yield* DateTime.now
  if (DateTime.greaterThan(expiresAt, now)) return
  return yield* invalidField(["expiresAt"], "Expected a time in the future", "expiresAt is in the past.")
})

/** The source scope of a key is fixed. That of a widget's key can change, because its public id stays the same. */
type KeyPatch = PatchKey & Pick<KeyChanges, "sourceScope">

const changesOf = ({ allowedOrigins, ...given }: KeyPatch): KeyChanges => ({
  ...given,
  ...(allowedOrigins === undefined ? {} : { allowedOrigins: allowedOrigins ?? [] })
})

export class Keys extends Effect.Service<Keys>()("usecases/accounts/Keys", {
  effect: Effect.gen(function* () {
    const credentials = yield* Credentials
    const keyStore = yield* KeyStore
    const agents = yield* AgentStore
    const store = yield* ApiKeyStore

    const insert = Effect.fn("Keys.insert")(function* (
      scope: TenantScope,
      key: Omit<NewKey, "id" | "prefix" | "fingerprint">,
      startsWith = secretPrefix
    ) {
      const text = `${startsWith}${yield* credentials.token}`
      const secret = Redacted.make(text)
      const row = {
        ...key,
        id: yield* newId.key,
        prefix: text.slice(0, prefixLength),
        fingerprint: yield* credentials.fingerprint(secret)
      }
      return { key: yield* store.insert(scope, row).pipe(orNoSuch("agent")), secret }
    })

    /** Creates the key of a widget. Its public id is not secret: the key can only chat, and not under `/v1`. */
    const createForWidget = Effect.fn("Keys.createForWidget")(function* (
      { agentId, tenantId }: AgentScope,
      key: Pick<NewKey, "name" | "allowedOrigins" | "sourceScope">
    ) {
      const created = yield* insert(
        { tenantId },
        { ...key, agentId, permissions: ["chat"], expiresAt: null, rateLimit: null },
        widgetPrefix
      )
      return { key: created.key, publicId: Redacted.value(created.secret) }
    })

    /** A new key of the agent with its secret, which is not shown again. */
    const create = Effect.fn("Keys.create")(function* (
      scope: TenantScope,
      agentId: AgentId,
      { name, permissions, allowedOrigins, expiresAt, rateLimit, sourceScope }: CreateAgentKey
    ) {
      yield* requireFutureExpiry(expiresAt)
      return yield* insert(scope, {
        agentId,
        name,
        permissions,
        allowedOrigins: allowedOrigins ?? [],
        expiresAt: expiresAt ?? null,
        rateLimit: rateLimit ?? null,
        sourceScope: sourceScope ?? null
      })
    })

    /** A new key for the whole organisation. */
    const createOrg = Effect.fn("Keys.createOrg")(function* (
      scope: TenantScope,
      { name, permissions }: CreateOrgKey
    ) {
      const key = {
        agentId: null,
        name,
        permissions,
        allowedOrigins: [],
        expiresAt: null,
        rateLimit: null,
        sourceScope: null
      }
      // Without an agent, NOT_FOUND is impossible.
      return yield* insert(scope, key).pipe(Effect.catchTag("NOT_FOUND", Effect.die))
    })

    /** The agent's keys, newest first. */
    const list = Effect.fn("Keys.list")(function* (scope: TenantScope, agentId: AgentId, page: PageRequest) {
      yield* agents.find(scope, agentId).pipe(orNoSuch("agent"))
      return yield* store.list(scope, agentId, page)
    })

    /** CONFLICT for a revoked key, which stays revoked, and when `expected` is no longer the newest version. */
    const patch = Effect.fn("Keys.patch")(function* (
      scope: TenantScope,
      id: KeyId,
      change: KeyPatch,
      expected: number | null = null
    ) {
      yield* requireFutureExpiry(change.expiresAt)
      const update = store.update(scope, id, changesOf(change), expected)
      const changed = yield* Effect.ensuring(update, keyStore.invalidate({ keyId: id }))
      if (Option.isSome(changed)) return changed.value
      const found = yield* store.find(scope, id).pipe(orNoSuch("key"))
      if (found.status !== "REVOKED") return yield* outdated(found.version)
      return yield* new Conflict({ message: "The key is revoked permanently. Create a new one." })
    })

    /** Revokes a key permanently, in this process at once. Revoking it again changes nothing. */
    const revoke = Effect.fn("Keys.revoke")(function* (scope: TenantScope, id: KeyId) {
      const revoked = yield* Effect.ensuring(store.revoke(scope, id), keyStore.invalidate({ keyId: id }))
      if (!revoked) return yield* noSuch("key")
    })

    return { create, createForWidget, createOrg, list, patch, revoke } as const
  })
}) {}
