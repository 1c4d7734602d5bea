/** API keys: resolves a raw secret to its permissions, with one look-up. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import type { Permission } from "../domain/accounts/Access.ts"
import type { AgentId, KeyId, TenantId } from "../domain/Ids.ts"
import type { RateLimit } from "../domain/accounts/RateLimit.ts"
import type { SourceScope } from "../domain/knowledge/SourceScope.ts"

/** A key that exists, is active and has not expired, with the entitlements of its tenant's plan. */
export interface LiveKey {
  readonly keyId: KeyId
  readonly tenantId: TenantId
  readonly scope: "agent" | "org"
  /** Null for an org-scoped key. */
  readonly agentId: AgentId | null
  readonly permissions: ReadonlyArray<Permission>
  /** Null for every source of the agent. */
  readonly sourceScope: SourceScope | null
  /** An empty list allows any origin. */
  readonly allowedOrigins: ReadonlyArray<string>
  /** Whether the plan includes the public API. */
  readonly publicApi: boolean
  /** Null for the server's limit for all keys, if there is one. */
  readonly rateLimit: RateLimit | null
}

/** The keys that a change affects: one key, every key of an agent, or every key of a tenant. */
export type AffectedKeys =
  { readonly keyId: KeyId } | { readonly agentId: AgentId } | { readonly tenantId: TenantId }

export class KeyStore extends Context.Tag("capabilities/KeyStore")<
  KeyStore,
  {
    /**
     * None when the key is missing, expired, inactive or revoked. A revocation takes effect within one second on every
     * process.
     */
    readonly find: (secret: Redacted.Redacted) => Effect.Effect<Option.Option<LiveKey>>
    /**
     * Must be called when a change of keys, of their agent or of their tenant's plan is committed. From then on `find`
     * on this process returns the new state. Other processes do so within one second.
     */
    readonly invalidate: (affected: AffectedKeys) => Effect.Effect<void>
  }
>() {}
