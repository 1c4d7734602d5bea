/** A channel made of functions of the library's host. */
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import {
  type ChannelAccess,
  type ChannelAdapter,
  type ChannelForm,
  ChannelError,
  channelRefusal
} from "../capabilities/ChannelAdapters.ts"
import { OutboundHttp, OutboundHttpError } from "../capabilities/OutboundHttp.ts"
import type {
  ChannelCall,
  ChannelFetchRequest,
  HostAccount,
  HostChannel
} from "../domain/channels/HostChannel.ts"
import { ExternalId } from "../domain/channels/ChannelConfiguration.ts"
import { fieldsOf, maxAliasCharacters, optionalMember, timestampOf, textOf, identifierOf } from "./Fields.ts"
import { markdownFormatter } from "./Markdown.ts"
import { emptyDelivery, combine, statusesOrIgnored, arrivalOrIgnored, ignored } from "./Normalized.ts"
import { invalidSignature, noContactAddress } from "./Refusals.ts"
import { MiB } from "../domain/Bytes.ts"
import { itemsOf } from "../domain/JsonValue.ts"

const callTimeout = Duration.seconds(20)
const maxAnswerBytes = MiB

const unknownOutcome = (message: string) => new ChannelError({ reason: "Unknown", message, retryable: true })

const accountOf = ({ accessToken, externalId, profile, secrets }: ChannelAccess): HostAccount => ({
  id: externalId,
  token: Redacted.value(accessToken),
  settings: profile,
  secrets: Record.map(secrets, Redacted.value)
})

/** After a refusal nothing was sent. Any other thrown error leaves the outcome unknown. */
const errorOfThrown = (thrown: unknown): ChannelError => {
  if (thrown instanceof ChannelError) return thrown
  if (!(thrown instanceof OutboundHttpError))
    return unknownOutcome("The channel failed before it returned a result.")
  const { message, reason } = thrown
  if (reason === "Refused" || reason === "InvalidUrl") return channelRefusal(message)
  return reason === "Unresolved" ? channelRefusal(message, true) : unknownOutcome(message)
}

const Refusal = Schema.Struct({
  refused: Schema.String,
  retryable: Schema.optionalWith(Schema.Boolean, { default: () => false }),
  retryAfter: Schema.optional(Schema.Positive)
})
const decodeRefusal = Schema.decodeUnknownOption(Refusal)

const isExternalId = Schema.is(ExternalId)

const refusalOf = (answer: unknown): ChannelError | null => {
  const found = decodeRefusal(answer)
  if (found._tag === "None") return null
  const { refused: message, retryAfter, retryable } = found.value
  return new ChannelError({
    reason: "Refused",
    message,
    retryable: retryable || retryAfter !== undefined,
    ...(retryAfter === undefined ? {} : { retryAfter: Duration.seconds(retryAfter) })
  })
}

const makeFetch =
  (http: typeof OutboundHttp.Service, signal: AbortSignal): ChannelCall["fetch"] =>
  async (url, { body, headers, maxBytes = maxAnswerBytes, method }: ChannelFetchRequest = {}) => {
    const request = { url, maxBytes, timeout: callTimeout, maxRedirects: 0 }
    const answer = await Effect.runPromise(
      Effect.either(
        http.fetch({
          ...request,
          ...(headers === undefined ? {} : { headers }),
          ...(method === undefined ? {} : { method }),
          ...(body === undefined ? {} : { body })
        })
      ),
      { signal }
    )
    if (Either.isLeft(answer)) throw answer.left
    const response = answer.right
    return {
      status: response.status,
      headers: response.headers,
      text: () => new TextDecoder().decode(response.body)
    }
  }

const formOf = ({ account, secrets = {}, settings = {} }: HostChannel): ChannelForm => ({
  account: account ?? null,
  secrets: Object.entries(secrets).map(([name, { label }]) => ({ name, label })),
  settings: Object.entries(settings).map(([name, setting]) => ({ name, ...setting }))
})

/** The events in the host's result. It is read as leniently as the payload of a provider. */
const normalize = (channel: string, accountId: string, result: unknown, now: DateTime.Utc) => {
  const { messages, statuses } = fieldsOf(result)
  const arrivals = itemsOf(messages).map((item) => {
    const { files, from, id, name, text, timestamp } = fieldsOf(item)
    const [messageId, sender] = [identifierOf(id), identifierOf(from, maxAliasCharacters)]
    const media = itemsOf(files).flatMap((file) => {
      const { mimeType, name: fileName, url } = fieldsOf(file)
      const address = identifierOf(url, 2_048)
      if (address === undefined) return []
      return [
        {
          kind: "document" as const,
          url: address,
          ...optionalMember("mimeType", identifierOf(mimeType, 200)),
          ...optionalMember("fileName", identifierOf(fileName))
        }
      ]
    })
    const trimmedText = textOf(text)
    if (messageId === undefined || sender === undefined || (trimmedText === "" && media.length === 0))
      return ignored
    return arrivalOrIgnored({
      event: {
        _tag: "Message",
        channel,
        accountId,
        messageId: `${accountId}:${messageId}`,
        from: [{ kind: "contact", value: sender }],
        ...optionalMember("profileName", identifierOf(name, 1_000)),
        kind: media.length > 0 ? "media" : "text",
        text: trimmedText,
        media,
        standby: false,
        timestamp: timestampOf(timestamp, 1, now)
      },
      raw: item
    })
  })
  const deliveryStatuses = itemsOf(statuses).map((item) => {
    const { delivery, error, id } = fieldsOf(item)
    const providerMessageId = identifierOf(id)
    const known = deliveryStates.find((state) => state === delivery)
    if (providerMessageId === undefined || known === undefined) return ignored
    return statusesOrIgnored([
      {
        channel,
        accountId,
        providerMessageId,
        outboxId: null,
        delivery: known,
        error: identifierOf(error) ?? null
      }
    ])
  })
  return combine([...arrivals, ...deliveryStatuses])
}

const deliveryStates = ["sent", "delivered", "read", "failed"] as const

/** `name` is the channel's name in the API and in addresses. */
export const hostChannel = (
  name: string,
  channel: HostChannel
): Effect.Effect<ChannelAdapter, never, OutboundHttp> =>
  Effect.map(OutboundHttp, (http): ChannelAdapter => {
    const callHost = <A>(run: (call: ChannelCall) => Promise<A>) =>
      Effect.tryPromise({
        try: (signal) => run({ signal, fetch: makeFetch(http, signal) }),
        catch: errorOfThrown
      }).pipe(
        Effect.timeoutFail({
          duration: callTimeout,
          onTimeout: () => unknownOutcome("The channel did not answer in time.")
        }),
        Effect.flatMap((answer) => {
          const refusal = refusalOf(answer)
          return refusal === null ? Effect.succeed(answer) : Effect.fail(refusal)
        }),
        Effect.withSpan("HostChannel.call", { attributes: { channel: name } })
      )
    /** The result of a function of the host; `otherwise` if it throws. */
    const resultOr = <A>(run: () => A, otherwise: A): A =>
      Either.getOrElse(Either.try({ try: run, catch: () => null }), () => otherwise)
    return {
      name,
      title: channel.title,
      form: formOf(channel),
      webhook: "account",
      verify: ({ body, header }, access) =>
        access !== null && resultOr(() => channel.verify({ body, header }, accountOf(access)), false) === true
          ? Either.void
          : Either.left(invalidSignature()),
      normalize: (body, now, access) =>
        access === null
          ? emptyDelivery
          : resultOr(
              () => normalize(name, access.externalId, channel.receive(body, accountOf(access)), now),
              ignored
            ),
      prove: (access) =>
        Effect.flatMap(
          callHost((call) => channel.prove(accountOf(access), call)),
          (answer) => {
            const id = Predicate.hasProperty(answer, "account") ? answer.account : undefined
            return isExternalId(id)
              ? Effect.succeed({ externalId: id, profile: {} })
              : Effect.fail(channelRefusal("The channel did not return an account."))
          }
        ),
      maxTextLength: channel.maxTextLength ?? 4_000,
      maxCaptionLength: 0,
      formatText: markdownFormatter({ strong: "", emphasis: "", code: "", fence: "" }),
      fileTypes: {},
      send: (to, { author, body, outboxId }) => {
        const contact = to.aliases.find(({ kind }) => kind === "contact")
        if (contact === undefined) return Effect.fail(noContactAddress())
        const message = { to: contact.value, text: body, id: outboxId, author }
        return Effect.flatMap(
          callHost((call) => channel.send(accountOf(to), message, call)),
          (answer) => {
            const id = Predicate.hasProperty(answer, "id") ? identifierOf(answer.id) : undefined
            return id === undefined
              ? Effect.fail(unknownOutcome("The channel did not return the result of the message."))
              : Effect.succeed(id)
          }
        )
      },
      markSeen: () => Effect.void,
      locate: () => Effect.fail(channelRefusal("The channel has no files by id.")),
      read: () => Effect.succeedNone
    }
  })
