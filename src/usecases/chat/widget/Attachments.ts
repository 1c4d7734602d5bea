/**
 * Files of a message. They are checked by their bytes while they arrive, kept once the whole request is valid, and read
 * again only for the model.
 */
import * as Prompt from "@effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { ArtifactStore, type Staged } from "../../../capabilities/ArtifactStore.ts"
import { ModelRuntime } from "../../../capabilities/ModelRuntime.ts"
import type { AgentScope } from "../../../domain/accounts/Access.ts"
import {
  matchesDeclaredType,
  type AttachmentType,
  maxAttachments,
  signatureLength,
  sizeLimits,
  type StoredAttachment,
  typeOf
} from "../../../domain/channels/Attachment.ts"
import {
  FileTooLarge,
  type PayloadTooLarge,
  UnsupportedAttachmentType,
  UnsupportedType,
  type ValidationError,
  orNoSuch
} from "../../../domain/Errors.ts"
import { currentOwner } from "../../../concurrency/CurrentOwner.ts"
import { FairLimiter } from "../../../concurrency/FairLimiter.ts"
import { AgentStore } from "../../../store/agents/Agents.ts"
import { Artifacts } from "../../knowledge/Artifacts.ts"
import * as ModelStep from "../ModelStep.ts"
import type { Files } from "../TurnOptions.ts"
import { MiB } from "../../../domain/Bytes.ts"

/** How reading a body may fail. */
type BodyError = ValidationError | PayloadTooLarge

/** A file as received. */
export interface SentFile {
  readonly name: string
  /** The content type that the sender declares. */
  readonly contentType: string
  readonly content: Stream.Stream<Uint8Array, BodyError>
}

/** A received file of an allowed type and size. */
export interface StagedFile {
  readonly name: string
  readonly mimeType: AttachmentType
  readonly staged: Staged
}

/**
 * MiB of files that all turns of this process hold for their models. A turn with more than half of it counts as half.
 */
const memory = { permits: 128, maxPermitsPerOwner: 64, maxWaiting: 1_024 } as const

/** Maximum bytes of stored files that are loaded for one reply. */
const maxLoadedBytes = 50 * MiB

const notAllowed = () =>
  new UnsupportedType({
    message: "Attachments are JPEG, PNG, WebP, GIF or PDF, and their declared type agrees with their bytes."
  })

const tooLarge = (type: AttachmentType) =>
  new FileTooLarge({
    message: `A file of type ${type} may take at most ${sizeLimits[type] / MiB} MB.`
  })

/** The content of `file`. Fails as soon as its bytes show a type or size that is not allowed. */
const checkedContent = ({ content, contentType }: SentFile, found: (type: AttachmentType) => void) =>
  Stream.suspend((): Stream.Stream<Uint8Array, BodyError | UnsupportedType | FileTooLarge> => {
    let head = new Uint8Array(0)
    let type: AttachmentType | null = null
    let size = 0
    const detectType = (): Effect.Effect<AttachmentType, UnsupportedType> => {
      type = typeOf(head)
      if (type === null || !matchesDeclaredType(contentType, type)) return Effect.fail(notAllowed())
      found(type)
      return Effect.succeed(type)
    }
    const checkChunk = (chunk: Uint8Array) =>
      Effect.gen(function* () {
        size += chunk.length
        if (type === null) head = Uint8Array.from([...head, ...chunk.subarray(0, signatureLength)])
        if (head.length < signatureLength) return chunk
        const known = type ?? (yield* detectType())
        return size > sizeLimits[known] ? yield* tooLarge(known) : chunk
      })
    // A file may be shorter than the longest signature.
    const end = Stream.execute(Effect.suspend(() => (type === null ? detectType() : Effect.void)))
    return Stream.concat(Stream.mapEffect(content, checkChunk), end)
  })

export class Attachments extends Effect.Service<Attachments>()("usecases/chat/widget/Attachments", {
  effect: Effect.gen(function* () {
    const store = yield* ArtifactStore
    const runtime = yield* ModelRuntime
    const artifacts = yield* Artifacts
    const agents = yield* AgentStore
    const memoryLimiter = new FairLimiter({ name: "attachment-mebibytes", ...memory })

    /** Receives the file. It is removed with the scope unless it is kept. */
    const stage = Effect.fn("Attachments.stage")(function* (file: SentFile) {
      const found: Array<AttachmentType> = []
      const content = checkedContent(file, (type) => found.push(type))
      const staged = yield* artifacts.stage(content)
      const [mimeType] = found
      if (mimeType === undefined) return yield* notAllowed()
      const one: StagedFile = { name: file.name, mimeType, staged }
      return one
    })

    /** Fails when the agent's model cannot read one of the files. */
    const check = Effect.fn("Attachments.check")(function* (
      scope: AgentScope,
      files: ReadonlyArray<StagedFile>
    ) {
      if (files.length === 0) return
      const agent = yield* agents.find(scope, scope.agentId).pipe(orNoSuch("agent"))
      const readable = runtime.readable(agent.model)
      const unread = files.find(({ mimeType }) => !readable.includes(mimeType))
      if (unread === undefined) return
      return yield* new UnsupportedAttachmentType({
        message: `The agent's model cannot read attachments of type ${unread.mimeType}.`
      })
    })

    const read = ({ artifact, mimeType, name }: StoredAttachment) =>
      store.get(artifact).pipe(
        Effect.flatMap(Effect.mapError(() => ModelStep.turnFailed())),
        Effect.catchTag("ArtifactStoreError", ({ message }) =>
          Effect.zipRight(Effect.logError("A file could not be read", message), ModelStep.turnFailed())
        ),
        Effect.map((data) => Prompt.makePart("file", { mediaType: mimeType, fileName: name, data }))
      )

    const load = (stored: ReadonlyArray<StoredAttachment>): Files["load"] => {
      const bytes = stored.reduce((sum, { size }) => sum + size, 0)
      return FiberRef.get(currentOwner).pipe(
        Effect.flatMap((owner) => memoryLimiter.acquire(owner, Math.ceil(bytes / MiB))),
        Effect.mapError(() => ModelStep.turnFailed()),
        Effect.zipRight(Effect.forEach(stored, read))
      )
    }

    /** Keeps the files for a turn. `release` runs when the turn ends or does not begin. */
    const keep = Effect.fn("Attachments.keep")(function* (files: ReadonlyArray<StagedFile>) {
      const kept = yield* Effect.forEach(files, ({ mimeType, name, staged }) =>
        Effect.map(artifacts.keepStaged(staged), (claim) => {
          const stored: StoredAttachment = { artifact: staged.ref, mimeType, name, size: staged.size }
          return { claim, stored }
        })
      )
      const stored = kept.map((one) => one.stored)
      const turnFiles: Files = {
        stored,
        load: load(stored),
        release: Effect.forEach(kept, ({ claim }) => artifacts.abandon(claim), { discard: true })
      }
      return turnFiles
    })

    /**
     * Files that the conversation stores and the agent's model can read: the newest, at most ten and {@link
     * maxLoadedBytes} bytes. The model knows the others only from the text of their messages.
     */
    const ofConversation = (scope: AgentScope, stored: ReadonlyArray<StoredAttachment>): Files => ({
      stored: [],
      load: Effect.gen(function* () {
        if (stored.length === 0) return []
        const agent = yield* agents.find(scope, scope.agentId)
        if (Option.isNone(agent)) return []
        const readable: ReadonlyArray<string> = runtime.readable(agent.value.model)
        let remainingBytes = maxLoadedBytes
        const newest = stored
          .filter(({ mimeType }) => readable.includes(mimeType))
          .slice(-maxAttachments)
          .toReversed()
          .filter(({ size }) => (remainingBytes -= size) >= 0)
        return yield* load(newest.toReversed())
      }),
      release: Effect.void
    })

    return { stage, check, keep, ofConversation } as const
  })
}) {}
