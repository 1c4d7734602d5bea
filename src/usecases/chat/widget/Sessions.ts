/** Widget sessions: open, find, identify. */
import { createHash, randomBytes } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ReadScope } from "../../../domain/accounts/Access.ts"
import type { ExternalEndUserId } from "../../../domain/chat/ChatTurn.ts"
import { Conflict, NotFound } from "../../../domain/Errors.ts"
import { newId } from "../../../domain/Ids.ts"
import { type Session, SessionId } from "../../../domain/chat/Widget.ts"
import type { HostedChannel } from "./Callers.ts"
import { WidgetSessionStore } from "../../../store/chat/WidgetSessions.ts"

const hashOf = (id: SessionId): Uint8Array => createHash("sha256").update(id).digest()

/** 256 random bits: knowing the id proves the session's person. */
const newSessionId = Effect.sync(() => SessionId.make(`ses_${randomBytes(32).toString("base64url")}`))

const noSuchSession = () => new NotFound({ message: "There is no such session. Begin one with init." })

export class WidgetSessions extends Effect.Service<WidgetSessions>()("usecases/chat/widget/Sessions", {
  effect: Effect.gen(function* () {
    const store = yield* WidgetSessionStore

    /** The session. Its conversation is null when its last message was written under another scope. */
    const find = Effect.fn("WidgetSessions.find")(function* (scope: ReadScope, sessionId: SessionId) {
      const found = yield* store.find(scope, hashOf(sessionId))
      if (Option.isNone(found)) return yield* noSuchSession()
      const session: Session = { sessionId, ...found.value }
      return session
    })

    /**
     * Assigns the session's anonymous person the caller's external id. That person's earlier conversations stay hidden
     * from the session. Fails with 409 when the session belongs to another external id.
     */
    const identify = Effect.fn("WidgetSessions.identify")(function* (
      scope: ReadScope,
      sessionId: SessionId,
      externalId: ExternalEndUserId
    ) {
      const outcome = yield* store.identify(scope, hashOf(sessionId), externalId, yield* newId.endUser)
      if (outcome === "missing") return yield* noSuchSession()
      if (outcome === "other") {
        return yield* new Conflict({
          message: "The session belongs to another external end user. Begin a new one."
        })
      }
      return yield* find(scope, sessionId)
    })

    /** Opens a session, with a new person unless the caller names one. */
    const open = Effect.fn("WidgetSessions.open")(function* (
      scope: ReadScope,
      externalId: ExternalEndUserId | null
    ) {
      const sessionId = yield* newSessionId
      const row = yield* store.insert(scope, hashOf(sessionId), {
        endUserId: yield* newId.endUser,
        externalId
      })
      const session: Session = { sessionId, ...row }
      return session
    })

    /** The named session, else a new one. */
    const begin = Effect.fn("WidgetSessions.begin")(function* (
      scope: ReadScope,
      {
        externalEndUserId,
        sessionId
      }: {
        readonly sessionId?: SessionId | undefined
        readonly externalEndUserId?: ExternalEndUserId | undefined
      }
    ) {
      if (sessionId === undefined) return yield* open(scope, externalEndUserId ?? null)
      return externalEndUserId === undefined
        ? yield* find(scope, sessionId)
        : yield* identify(scope, sessionId, externalEndUserId)
    })

    /** The conversation of the session's next message. `created` is true when that message begins it. */
    const place = Effect.fn("WidgetSessions.place")(function* (
      scope: ReadScope,
      channel: HostedChannel,
      sessionId: SessionId
    ) {
      const found = yield* store.place(scope, hashOf(sessionId), { id: yield* newId.conversation, channel })
      if (Option.isNone(found)) return yield* noSuchSession()
      return found.value
    })

    return { begin, find, identify, place, discard: store.discard, prune: store.prune } as const
  })
}) {}
