import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { OpenSessions } from "../../../usecases/accounts/OpenSessions.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { actor } from "./Actor.ts"

const action = "session.revoke"

/** The caller's own sessions. */
export const OpenSessionsHandlers = HttpApiBuilder.group(Api, "openSessions", (handlers) =>
  Effect.gen(function* () {
    const sessions = yield* OpenSessions
    const audit = yield* AuditTrail
    return handlers
      .handle("own", () =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          return { sessions: yield* sessions.list(user, user.userId) }
          // The caller exists: the session has just authenticated.
        }).pipe(Effect.catchTag("NOT_FOUND", Effect.die))
      )
      .handle("endOthers", () =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          const change = sessions.endOthers(user, user.userId)
          return { ended: yield* audit.change(yield* actor, action, change, () => user.userId) }
        })
      )
      .handle("end", ({ path: { id } }) =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          yield* audit.change(yield* actor, action, sessions.end(user, user.userId, id), () => id)
          return { id, deleted: true } as const
        })
      )
  })
)

/** Sessions of members, for owners. */
const group = (handlers: GroupHandlers<"memberSessions">) =>
  Effect.gen(function* () {
    const sessions = yield* OpenSessions
    const audit = yield* AuditTrail
    return handlers
      .handle("list", ({ path: { id } }) =>
        Effect.gen(function* () {
          return { sessions: yield* sessions.list(yield* CurrentUser, id) }
        })
      )
      .handle("endAll", ({ path: { id } }) =>
        Effect.gen(function* () {
          const change = sessions.endOthers(yield* CurrentUser, id)
          return { ended: yield* audit.change(yield* actor, action, change, () => id) }
        })
      )
      .handle("endOne", ({ path: { id, session } }) =>
        Effect.gen(function* () {
          const change = sessions.end(yield* CurrentUser, id, session)
          yield* audit.change(yield* actor, action, change, () => session)
          return { id: session, deleted: true } as const
        })
      )
  })

export const MemberSessionsHandlers = HttpApiBuilder.group(Api, "memberSessions", group)
export const ManagedMemberSessionsHandlers = HttpApiBuilder.group(Api, "managedMemberSessions", group)
