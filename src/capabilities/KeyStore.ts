/** API keys: from the raw secret to what it may do, in one look-up. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import type { Permission } from "../domain/accounts/Access.ts"
import type { AgentId, KeyId, TenantId } from "../domain/Ids.ts"
import type { RateLimit } from "../domain/accounts/RateLimit.ts"
import type { SourceScope } from "../domain/knowledge/SourceScope.ts"

/** A key that exists, is active and has not expired, with what its tenant's plan says. */
export interface LiveKey {
  readonly keyId: KeyId
  readonly tenantId: TenantId
  readonly scope: "agent" | "org"
  /** Null for an org-scoped key. */
  readonly agentId: AgentId | null
  readonly permissions: ReadonlyArray<Permission>
  /** Null: every source of the agent. */
  readonly sourceScope: SourceScope | null
  /** Empty: any origin. */
  readonly allowedOrigins: ReadonlyArray<string>
  /** The plan includes the public API. */
  readonly publicApi: boolean
  /** Null: what the server sets for all keys, if anything. */
  readonly rateLimit: RateLimit | null
}

/** Whose keys a change touches: one key, every key of an agent, or every key of a tenant. */
export type Touched =
  { readonly keyId: KeyId } | { readonly agentId: AgentId } | { readonly tenantId: TenantId }

export class KeyStore extends Context.Tag("capabilities/KeyStore")<
  KeyStore,
  {
    /** None when missing, expired, inactive or revoked. A revocation holds within one second on every process. */
    readonly find: (secret: Redacted.Redacted) => Effect.Effect<Option.Option<LiveKey>>
    /**
     * To be called once a change of keys, of their agent or of their tenant's plan is committed: from then on `find`
     * on this process knows it. Other processes learn of it by themselves, within the second.
     */
    readonly invalidate: (touched: Touched) => Effect.Effect<void>
  }
>() {}
