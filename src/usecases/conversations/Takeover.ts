/** Team members who answer conversations in place of the agent, from the dashboard. */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { SessionUser } from "../../domain/accounts/Access.ts"
import { type ChannelAdapter, ChannelAdapters } from "../../capabilities/ChannelAdapters.ts"
import type { ConversationScope, ConversationState } from "../../domain/conversations/Conversation.ts"
import {
  Conflict,
  FileTooLarge,
  UnsupportedAttachmentType,
  invalidField,
  orNoSuch
} from "../../domain/Errors.ts"
import { type ConversationId, type MessageId, messageIdOf } from "../../domain/Ids.ts"
import { type Changed, ConversationStates } from "../../store/conversations/ConversationStates.ts"
import { ConversationStore } from "../../store/conversations/Conversations.ts"
import { differentRequest, repeatHash } from "../accounts/RepeatedRequests.ts"
import * as Content from "../channels/Content.ts"
import { ConversationControl, type OutgoingMessage } from "./ConversationControl.ts"
import { Attachments, type StagedFile } from "../chat/widget/Attachments.ts"

type Action = "takeover" | "release" | "close" | "say"

/** Allowed transitions; any other is a 409. `CLOSED` is final. */
const transitions = {
  takeover: { from: ["AI_ACTIVE", "HUMAN_REQUESTED"], to: "HUMAN_ACTIVE" },
  release: { from: ["HUMAN_REQUESTED", "HUMAN_ACTIVE"], to: "AI_ACTIVE" },
  close: { from: ["AI_ACTIVE", "HUMAN_REQUESTED", "HUMAN_ACTIVE"], to: "CLOSED" },
  say: { from: ["AI_ACTIVE", "HUMAN_REQUESTED", "HUMAN_ACTIVE"], to: "HUMAN_ACTIVE" }
} as const satisfies Record<
  Action,
  { readonly from: ReadonlyArray<ConversationState>; readonly to: ConversationState }
>

const refused = (state: ConversationState) =>
  new Conflict({ message: `The conversation is ${state}.`, details: { state } })

const emptyReply = () => invalidField(["content"], "Expected something to say, or files")

/** Fails for a file that the conversation's channel cannot send. */
const checkFiles = (adapter: ChannelAdapter | null, files: ReadonlyArray<StagedFile>) =>
  Effect.gen(function* () {
    if (adapter === null) return
    for (const { mimeType, staged } of files) {
      const carriedFile = adapter.fileTypes[mimeType]
      if (carriedFile === undefined) {
        return yield* new UnsupportedAttachmentType({
          message: `The conversation's channel does not carry attachments of type ${mimeType}.`
        })
      }
      if (staged.size > carriedFile.maxBytes) {
        return yield* new FileTooLarge({
          message: `The conversation's channel carries at most ${carriedFile.maxBytes} bytes of type ${mimeType}.`
        })
      }
    }
  })

/** The message of an earlier request with the same Idempotency-Key. */
class AlreadySent extends Data.TaggedError("AlreadySent")<{ readonly messageId: MessageId }> {}

/** A message of a team member: text, files, or both. */
export interface Reply {
  readonly content?: string
  readonly files?: ReadonlyArray<StagedFile>
}

export class Takeover extends Effect.Service<Takeover>()("usecases/conversations/Takeover", {
  effect: Effect.gen(function* () {
    const control = yield* ConversationControl
    const states = yield* ConversationStates
    const store = yield* ConversationStore
    const attachments = yield* Attachments
    const adapters = yield* ChannelAdapters

    const findConversation = Effect.fn("Takeover.findConversation")(function* (
      scope: ConversationScope,
      id: ConversationId
    ) {
      return yield* store.find(scope, id).pipe(orNoSuch("conversation"))
    })

    const orConflict = Effect.fn("Takeover.orConflict")(function* <A>(
      scope: ConversationScope,
      id: ConversationId,
      outcome: Option.Option<A>
    ) {
      if (Option.isSome(outcome)) return outcome.value
      return yield* refused((yield* findConversation(scope, id)).state)
    })

    const act = Effect.fn("Takeover.act")(function* (
      { tenantId, userId }: SessionUser,
      id: ConversationId,
      action: Exclude<Action, "say">
    ) {
      const change = { ...transitions[action], by: userId, unanswered: "human" }
      yield* orConflict({ tenantId }, id, yield* control.change({ tenantId }, id, change, () => Effect.void))
      return yield* findConversation({ tenantId }, id)
    })

    /** The user answers from now on. A reply that the agent is writing is not sent. */
    const takeover = (by: SessionUser, id: ConversationId) => act(by, id, "takeover")

    /** The agent answers later messages. It does not see the earlier ones. */
    const release = (by: SessionUser, id: ConversationId) => act(by, id, "release")

    /** Closes the conversation. A channel contact who writes again begins a new one. */
    const close = (by: SessionUser, id: ConversationId) => act(by, id, "close")

    /** Fails if an earlier request of the user has stored `message`, or another one with its id. */
    const failIfSent = ({ tenantId }: SessionUser, message: OutgoingMessage) =>
      Effect.gen(function* () {
        const { attachments: stored = [], content, id } = message
        if (id === undefined) return
        const sent = yield* states.compareMessage({ tenantId }, id, content, stored)
        if (Option.isSome(sent))
          return yield* sent.value.isSame ? new AlreadySent({ messageId: id }) : differentRequest()
      })

    /**
     * Sends a message as the user, who also takes the conversation over. Returns the message's id. A repeat with the
     * same `idempotencyKey` sends nothing, also if the conversation has been closed since.
     */
    const say = Effect.fn("Takeover.say")(function* (
      by: SessionUser,
      id: ConversationId,
      { content = "", files = [] }: Reply,
      idempotencyKey?: string
    ) {
      const { tenantId, userId } = by
      if (content === "" && files.length === 0) return yield* emptyReply()
      if (files.length > 0)
        yield* checkFiles(adapters.named((yield* findConversation({ tenantId }, id)).channel), files)
      const { release, stored } = yield* attachments.keep(files)
      const change = { ...transitions.say, by: userId, unanswered: "human" }
      const hash = repeatHash(by, id, idempotencyKey)
      const message = {
        ...(hash === null ? {} : { id: messageIdOf(hash) }),
        content: content === "" ? Content.textOfFiles(stored) : content,
        sent: content,
        attachments: stored,
        author: "human",
        userId
      } as const
      const send = ({ epoch }: Changed) =>
        // A concurrent request may have sent it since. The conversation is locked now.
        Effect.zipRight(failIfSent(by, message), control.addMessage({ tenantId }, id, epoch, message))
      const messageId = yield* failIfSent(by, message).pipe(
        Effect.zipRight(control.change({ tenantId }, id, change, send)),
        Effect.flatMap((outcome) => orConflict({ tenantId }, id, outcome)),
        Effect.catchTag("AlreadySent", (sent) => Effect.succeed(sent.messageId)),
        Effect.ensuring(release)
      )
      return { conversation: yield* findConversation({ tenantId }, id), messageId }
    })

    return { takeover, release, close, say } as const
  })
}) {}
