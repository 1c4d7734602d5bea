/**
 * Files of channel messages. They are fetched once the message is stored, by the provider's id or by address, and
 * attached to it. A file that cannot be fetched leaves the message as it is. If files cannot be stored, none is
 * attached.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Encoding from "effect/Encoding"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import { OutboundHttp, type OutboundHttpError } from "../../capabilities/OutboundHttp.ts"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import {
  type ChannelAccess,
  type ChannelAdapter,
  ChannelAdapters,
  ChannelError,
  channelRefusal
} from "../../capabilities/ChannelAdapters.ts"
import {
  largestAttachment,
  maxAttachments,
  sizeLimits,
  signatureLength,
  type StoredAttachment,
  typeOf
} from "../../domain/channels/Attachment.ts"
import type { InboundMedia, InboundMessage } from "../../domain/channels/Channel.ts"
import { ServiceUnavailable } from "../../domain/Errors.ts"
import type { ConversationId } from "../../domain/Ids.ts"
import { withSharedPermit } from "../../concurrency/CurrentOwner.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import { sanitize } from "../../domain/Text.ts"
import { ChannelConversationStore, type Route } from "../../store/channels/ChannelConversations.ts"
import { makeChannelHealth } from "../../store/channels/ChannelHealth.ts"
import { ChannelStore } from "../../store/channels/Channels.ts"
import { accessOf } from "./ChannelAccess.ts"
import { Artifacts, type ClaimedArtifact } from "../knowledge/Artifacts.ts"

/** Time-out for all files of one message: the answer waits for them. */
const filesTimeout = Duration.seconds(60)
const fileTimeout = Duration.seconds(30)
/** Maximum messages whose files are fetched at once: each holds one file in memory. */
const concurrentMessages = { permits: 8, maxPermitsPerOwner: 4, maxWaiting: 1_024 } as const
const maxNameCharacters = 200

const fetchRetries = Schedule.exponential("500 millis").pipe(Schedule.intersect(Schedule.recurs(2)))

/** Declared types that are used when the bytes show none: no images, and nothing that a browser would execute. */
const trustedDeclaredType = /^(?:video|audio|application)\/[a-z0-9][a-z0-9.+-]{0,100}$/
const unknownType = "application/octet-stream"

const fileExtensions: Readonly<Record<string, string>> = {
  "image/jpeg": "jpg",
  "image/png": "png",
  "image/webp": "webp",
  "image/gif": "gif",
  "application/pdf": "pdf"
}

class TooManyFiles extends Data.TaggedError("TooManyFiles")<{}> {}

const notStored = "The files of a message could not be stored"
const cannotStore = () => new ServiceUnavailable({ message: `${notStored}.` })

interface Fetched {
  readonly bytes: Uint8Array
  readonly mimeType: string
}

const toChannelError = ({ message, reason }: OutboundHttpError) =>
  new ChannelError({
    reason: "Refused",
    message,
    retryable: reason === "TimedOut" || reason === "Unreachable" || reason === "Unresolved"
  })

/** The type by the file's bytes. The sender's type is used only when the bytes show none. */
const detectType = (bytes: Uint8Array, declaredType: string | undefined) =>
  Effect.gen(function* () {
    const signatureType = typeOf(bytes.subarray(0, signatureLength))
    const limit = signatureType === null ? largestAttachment : sizeLimits[signatureType]
    if (bytes.length === 0 || bytes.length > limit)
      return yield* channelRefusal("The file is empty or too large.")
    const [name = ""] = (declaredType ?? "").toLowerCase().split(";")
    const acceptedType =
      trustedDeclaredType.test(name.trim()) && name.trim() !== "application/pdf" ? name.trim() : unknownType
    const fetched: Fetched = { bytes, mimeType: signatureType ?? acceptedType }
    return fetched
  })

const nameOf = ({ fileName, kind }: InboundMedia, mimeType: string) => {
  const given = sanitize((fileName ?? "").trim().slice(-maxNameCharacters))
  const extension = fileExtensions[mimeType]
  return given === "" ? (extension === undefined ? kind : `${kind}.${extension}`) : given
}

export class InboundFiles extends Effect.Service<InboundFiles>()("usecases/channels/InboundFiles", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const adapters = yield* ChannelAdapters
    const http = yield* OutboundHttp
    const box = yield* SecretBox
    const channels = yield* ChannelStore
    const conversations = yield* ChannelConversationStore
    const artifacts = yield* Artifacts
    const health = yield* makeChannelHealth
    const limiter = new FairLimiter({ name: "channel-inbound-files", ...concurrentMessages })

    const accountOf = Effect.fn("InboundFiles.accountOf")(function* ({ channelId, tenantId }: Route) {
      const found = yield* channels.findCurrent({ tenantId }, channelId)
      const adapter = Option.isNone(found) ? null : adapters.named(found.value.channel)
      if (Option.isNone(found) || adapter === null) return yield* channelRefusal("The channel is gone.")
      const account: { readonly adapter: ChannelAdapter; readonly access: ChannelAccess } = {
        adapter,
        access: yield* accessOf(box, found.value)
      }
      return account
    })

    /** Fetches from the public internet. Addresses of private networks are refused. */
    const fetchOutside = (url: string, headers: Readonly<Record<string, string>>) =>
      Effect.gen(function* () {
        const request = { url, headers, maxBytes: largestAttachment, timeout: fileTimeout }
        const {
          body,
          headers: answered,
          status
        } = yield* Effect.mapError(http.fetch(request), toChannelError)
        if (status === 200) return { body, contentType: answered["content-type"] }
        return yield* new ChannelError({
          reason: "Refused",
          message: `The file was answered with status ${status}.`,
          retryable: status >= 500 || status === 429
        })
      })

    /** Records in the channel's health whether its provider answered `call`. */
    const recordHealth = <A>(route: Route, call: Effect.Effect<A, ChannelError>) =>
      Effect.tapBoth(call, {
        onFailure: () => health.recordFailure(route, route.channelId),
        onSuccess: () => health.recordSuccess(route, route.channelId)
      })

    const fetchById = Effect.fn("InboundFiles.fetchById")(function* (
      route: Route,
      id: string,
      declaredType: string | undefined
    ) {
      const { access, adapter } = yield* accountOf(route)
      const {
        file_size: size,
        mime_type: mimeType,
        url
      } = yield* recordHealth(route, adapter.locate(access, id))
      if ((size ?? 0) > largestAttachment) return yield* channelRefusal("The file is too large.")
      const readByAdapter = yield* recordHealth(route, adapter.read(access, url, largestAttachment))
      const bytes = Option.isSome(readByAdapter)
        ? readByAdapter.value
        : (yield* fetchOutside(url, { authorization: `Bearer ${Redacted.value(access.accessToken)}` })).body
      return yield* detectType(bytes, mimeType ?? declaredType)
    })

    const fetchByUrl = (url: string, declaredType: string | undefined) =>
      Effect.flatMap(fetchOutside(url, {}), ({ body, contentType }) =>
        detectType(body, declaredType ?? contentType)
      )

    const fetchMedia = (route: Route, { data, id, mimeType, url }: InboundMedia) => {
      if (data !== undefined)
        return Effect.flatMap(
          Effect.mapError(Encoding.decodeBase64(data), () => channelRefusal("The file cannot be decoded.")),
          (bytes) => detectType(bytes, mimeType)
        )
      if (id !== undefined) return fetchById(route, id, mimeType)
      return url === undefined
        ? Effect.fail(channelRefusal("The file has no address."))
        : fetchByUrl(url, mimeType)
    }

    interface FetchedFile {
      readonly kept: ClaimedArtifact
      readonly stored: StoredAttachment
    }

    const fetchFile = (route: Route, media: InboundMedia) =>
      Effect.gen(function* () {
        const { bytes, mimeType } = yield* fetchMedia(route, media).pipe(
          Effect.retry({ schedule: fetchRetries, while: ({ retryable }) => retryable })
        )
        const kept = yield* artifacts.keep(bytes)
        const name = nameOf(media, mimeType)
        const fetched: FetchedFile = {
          kept,
          stored: { artifact: kept.ref, mimeType, name, size: bytes.length }
        }
        return fetched
      })

    /** Attaches the files in one transaction. From then on the conversation refers to them. */
    const settle = (
      route: Route,
      conversationId: ConversationId,
      messageId: string,
      fetched: ReadonlyArray<FetchedFile>
    ) =>
      Effect.gen(function* () {
        const stored = fetched.map((one) => one.stored)
        if (!(yield* conversations.attach(route, conversationId, messageId, stored))) return false
        for (const { kept } of fetched.toSorted((a, b) => (a.kept.ref < b.kept.ref ? -1 : 1))) {
          yield* artifacts.settle(kept)
        }
        yield* conversations.keepFiles(route, conversationId, stored)
        return true
      }).pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die))

    const attachFiles = (route: Route, conversationId: ConversationId, event: InboundMessage) => {
      const fetched: Array<FetchedFile> = []
      const logLoss = (reason: string) =>
        Effect.logWarning("A file of a message could not be fetched", reason)
      const one = (media: InboundMedia) =>
        fetchFile(route, media).pipe(
          Effect.tap((file) => Effect.sync(() => fetched.push(file))),
          Effect.catchTag("ChannelError", ({ message }) => logLoss(message))
        )
      return Effect.forEach(event.media.slice(0, maxAttachments), one, { discard: true }).pipe(
        withSharedPermit(limiter, () => new TooManyFiles()),
        Effect.catchTag("TooManyFiles", () => logLoss("Too many files are being fetched.")),
        Effect.timeoutTo({ duration: filesTimeout, onTimeout: () => true, onSuccess: () => false }),
        Effect.tap((late) => (late ? logLoss("The files took too long.") : Effect.void)),
        Effect.zipRight(
          Effect.suspend(() =>
            fetched.length === 0
              ? Effect.succeed(false)
              : settle(route, conversationId, event.messageId, fetched)
          )
        ),
        Effect.onExit((exit) =>
          exit._tag === "Success" && exit.value
            ? Effect.void
            : Effect.forEach(fetched, ({ kept }) => artifacts.abandon(kept), { discard: true })
        )
      )
    }

    /**
     * Fetches the files of a stored message and attaches them, unless it has some. True when any was attached. Fails
     * when files cannot be stored now: a mail is the only place that has them.
     */
    const attach = Effect.fn("InboundFiles.attach")(function* (
      route: Route,
      conversationId: ConversationId,
      event: InboundMessage
    ) {
      if (event.media.length === 0) return false
      if (!(yield* conversations.isWithoutFiles(route, conversationId, event.messageId))) return false
      return yield* attachFiles(route, conversationId, event).pipe(
        Effect.catchAllDefect((defect) =>
          Effect.zipRight(Effect.logWarning(notStored, defect), cannotStore())
        )
      )
    })

    return { attach } as const
  })
}) {}
