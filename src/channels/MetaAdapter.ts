/** WhatsApp and Messenger as channels: one app for all accounts, one API for both. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import {
  type ChannelAdapter,
  type ChannelRecipient,
  channelRefusal
} from "../capabilities/ChannelAdapters.ts"
import { NotConfigured } from "../domain/Errors.ts"
import type { JsonObject } from "../domain/Text.ts"
import { unreadableAnswer } from "./ProviderRequest.ts"
import { fieldsOf, identifierOf } from "./Fields.ts"
import { Graph } from "./Graph.ts"
import { GraphFiles } from "./GraphFiles.ts"
import type { MetaChannel } from "./MetaChannel.ts"
import * as Messenger from "./messenger/Inbound.ts"
import { messenger } from "./messenger/Send.ts"
import type { Normalizer } from "./Normalized.ts"
import { isSigned } from "./Signature.ts"
import * as Whatsapp from "./whatsapp/Inbound.ts"
import { whatsapp } from "./whatsapp/Send.ts"
import { noContactAddress, invalidSignature } from "./Refusals.ts"

const appSecretMissing = () =>
  new NotConfigured({ message: "Webhooks of messaging providers need CHANNEL_APP_SECRET to be set." })
const wrongAccount = () => channelRefusal("The access token does not belong to this account.")

interface MetaProvider {
  readonly name: string
  readonly title: string
  readonly account: string
  readonly channel: MetaChannel
  readonly normalize: Normalizer
  /** The path that returns the id of the account that the token belongs to. */
  readonly accountPath: (externalId: string) => string
}

const providers: ReadonlyArray<MetaProvider> = [
  {
    name: "whatsapp",
    title: "WhatsApp",
    account: "Phone number id",
    channel: whatsapp,
    normalize: Whatsapp.normalize,
    accountPath: (externalId) => externalId
  },
  {
    name: "messenger",
    title: "Messenger",
    account: "Page id",
    channel: messenger,
    normalize: Messenger.normalize,
    // Any token can read a Page by its id, but `me` is the Page only for the Page's own token.
    accountPath: () => "me"
  }
]

/** `appSecret` verifies deliveries. If it is null, none is accepted. */
export const metaAdapters = (appSecret: Redacted.Redacted | null) =>
  Effect.gen(function* () {
    const graph = yield* Graph
    const files = yield* GraphFiles

    const adapterOf = ({
      account,
      channel,
      name,
      normalize,
      accountPath,
      title
    }: MetaProvider): ChannelAdapter => {
      const post = (to: ChannelRecipient, body: JsonObject) =>
        graph.post(`${to.externalId}/messages`, to.accessToken, body)
      return {
        name,
        title,
        form: { account, secrets: [] },
        webhook: "app",
        verify: ({ body, header }) => {
          if (appSecret === null) return Either.left(appSecretMissing())
          return isSigned(appSecret, header("x-hub-signature-256"), body)
            ? Either.void
            : Either.left(invalidSignature())
        },
        normalize,
        prove: ({ accessToken, externalId }) =>
          Effect.gen(function* () {
            const answer = yield* graph.get(`${accountPath(externalId)}?fields=id`, accessToken)
            if (identifierOf(fieldsOf(answer)["id"]) !== externalId) return yield* wrongAccount()
            return { externalId, profile: {} }
          }),
        maxTextLength: channel.maxTextLength,
        maxCaptionLength: channel.maxCaptionLength,
        formatText: channel.formatText,
        fileTypes: channel.fileTypes,
        upload: ({ accessToken, externalId }, { as, bytes, mimeType, name: fileName }) =>
          Effect.gen(function* () {
            const { fields, fileField, path } = channel.upload(as, mimeType)
            const file = { field: fileField, name: fileName, mimeType, bytes }
            const answer = yield* files.upload(`${externalId}/${path}`, accessToken, fields, file)
            const id = channel.uploadedFileId(answer)
            if (Option.isNone(id)) return yield* unreadableAnswer()
            return id.value
          }),
        send: (to, { body: text, file, outboxId }) =>
          Effect.gen(function* () {
            const outgoing = { aliases: to.aliases, body: text, outboxId }
            const body =
              file === null
                ? channel.text(outgoing)
                : channel.file({ ...outgoing, as: file.as, name: file.name, fileId: file.uploaded ?? "" })
            if (body === null) return yield* noContactAddress()
            const id = channel.messageId(yield* post(to, body))
            if (Option.isNone(id)) return yield* unreadableAnswer()
            return id.value
          }),
        markSeen: (to, messageId) =>
          Effect.forEach(channel.markSeen(to.aliases, messageId), (body) => post(to, body), {
            discard: true
          }),
        locate: ({ accessToken }, id) => files.locate(id, accessToken),
        read: ({ accessToken }, url, maxBytes) => files.read(url, accessToken, maxBytes)
      }
    }
    return providers.map(adapterOf)
  })
