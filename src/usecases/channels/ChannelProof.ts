/**
 * Proof of ownership of a provider's account: the provider accepts the configured token for it. Checked before an
 * account becomes active. An account of another tenant is moved to the tenant that proves it, when the provider refuses
 * the other tenant's token.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import {
  type ChannelAccess,
  type ChannelAdapter,
  type ChannelError,
  type ProvenAccount
} from "../../capabilities/ChannelAdapters.ts"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { Conflict, ServiceUnavailable, invalidField } from "../../domain/Errors.ts"
import { ChannelStore, type StoredChannel } from "../../store/channels/Channels.ts"
import { accessOf } from "./ChannelAccess.ts"
import { ChannelSettings } from "./ChannelSettings.ts"

export const accountTaken = () =>
  new Conflict({ message: "The account has an active configuration already." })

const notConfirmed = () =>
  new ServiceUnavailable({
    message: "The provider could not confirm the account. Nothing was changed."
  })

const isRefusal = ({ reason, retryable }: ChannelError) => reason === "Refused" && !retryable

const invalid = (path: string, message: string) =>
  invalidField([path], message, "The channel cannot be activated.")

const toRequestError = (path: string) => (error: ChannelError) =>
  isRefusal(error) ? invalid(path, error.message) : notConfirmed()

/** The address to which the provider sends deliveries. */
export const webhookUrlOf = (
  appUrl: string,
  adapter: ChannelAdapter | null,
  row: Pick<StoredChannel, "channel" | "externalId">
) =>
  adapter?.webhook === "account"
    ? `${appUrl}/api/webhooks/${row.channel}/${encodeURIComponent(row.externalId)}`
    : `${appUrl}/api/webhooks/${row.channel}`

export class ChannelProof extends Effect.Service<ChannelProof>()("usecases/channels/ChannelProof", {
  effect: Effect.gen(function* () {
    const store = yield* ChannelStore
    const box = yield* SecretBox
    const { appUrl } = yield* ChannelSettings

    /**
     * The provider's data of the account. VALIDATION_ERROR when it refuses the token, SERVICE_UNAVAILABLE when it does
     * not answer.
     */
    const prove = (adapter: ChannelAdapter, access: ChannelAccess) =>
      Effect.withSpan(
        Effect.mapError(adapter.prove(access), toRequestError("accessToken")),
        "ChannelProof.prove"
      )

    /** True when the provider refuses another tenant's token for the account. */
    const isTokenRefused = (adapter: ChannelAdapter, row: StoredChannel) =>
      Effect.gen(function* () {
        // A token that cannot be decrypted here says nothing about its tenant.
        const access = yield* Effect.mapError(accessOf(box, row), notConfirmed)
        return yield* adapter.prove(access).pipe(
          Effect.as(false),
          Effect.catchAll((error) => (isRefusal(error) ? Effect.succeed(true) : notConfirmed()))
        )
      })

    /**
     * The configuration of another tenant that is replaced; none when the account is free but for `ownIds`.
     * CONFLICT when it cannot be replaced.
     */
    const findReplaced = Effect.fn("ChannelProof.findReplaced")(function* (
      adapter: ChannelAdapter,
      { tenantId }: TenantScope,
      externalId: string,
      ownIds: ReadonlySet<string>
    ) {
      for (const row of yield* store.byAccount(adapter.name, externalId)) {
        if (ownIds.has(row.id)) continue
        if (row.tenantId === tenantId || !(yield* isTokenRefused(adapter, row))) return yield* accountTaken()
        return Option.some(row)
      }
      return Option.none<StoredChannel>()
    })

    /** Registers this service's address at the provider, where it allows that. */
    const connect = Effect.fn("ChannelProof.connect")(function* (
      adapter: ChannelAdapter,
      access: ChannelAccess,
      { externalId, profile }: ProvenAccount
    ) {
      if (adapter.connect === undefined) return
      const url = webhookUrlOf(appUrl, adapter, { channel: adapter.name, externalId })
      yield* Effect.mapError(
        adapter.connect({ ...access, externalId, profile }, url),
        toRequestError("channel")
      )
    })

    return { prove, findReplaced, connect } as const
  })
}) {}
