/** Credentials of a provider's account, decrypted from their sealed form. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { type ChannelAccess, type ChannelError, channelRefusal } from "../../capabilities/ChannelAdapters.ts"
import type { SecretBox } from "../../capabilities/SecretBox.ts"
import type { StoredChannel } from "../../store/channels/Channels.ts"

type Box = typeof SecretBox.Service
type Sealed = Pick<StoredChannel, "externalId" | "accessToken" | "secrets" | "profile">

const Secrets = Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.Redacted(Schema.String) }))
const decode = Schema.decodeUnknown(Secrets)
const encode = Schema.encodeSync(Secrets)

const unreadable = () => channelRefusal("The channel's token cannot be opened.")

const unseal = (box: Box, purpose: "channel-token" | "channel-secrets", sealed: string) =>
  Effect.flatMap(box.open(purpose, sealed), Option.match({ onNone: unreadable, onSome: Effect.succeed }))

export const accessOf = (
  box: Box,
  { accessToken, externalId, profile, secrets }: Sealed
): Effect.Effect<ChannelAccess, ChannelError> =>
  Effect.gen(function* () {
    const token = yield* unseal(box, "channel-token", accessToken)
    const others =
      secrets === null
        ? {}
        : yield* Effect.mapError(decode(yield* unseal(box, "channel-secrets", secrets)), unreadable)
    return { externalId, profile, accessToken: Redacted.make(token), secrets: others }
  })

/** The credentials in stored, sealed form. */
export const sealAccess = (box: Box, { accessToken, externalId, profile, secrets }: ChannelAccess) =>
  Effect.gen(function* () {
    const hasSecrets = Object.keys(secrets).length > 0
    const stored: Sealed = {
      externalId,
      profile,
      accessToken: yield* box.seal("channel-token", Redacted.value(accessToken)),
      secrets: hasSecrets ? yield* box.seal("channel-secrets", encode(secrets)) : null
    }
    return stored
  })
