import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { OpenSessions } from "../../../usecases/accounts/OpenSessions.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { audited, auditedRemoval } from "./Actor.ts"

const action = "session.revoke"

/** The caller's own sessions. */
export const OpenSessionsHandlers = HttpApiBuilder.group(Api, "openSessions", (handlers) =>
  Effect.gen(function* () {
    const sessions = yield* OpenSessions
    return handlers
      .handle("own", () =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          return { sessions: yield* sessions.list(user, user.userId) }
          // The caller exists: the session has just authenticated.
        }).pipe(Effect.catchTag("NOT_FOUND", Effect.die))
      )
      .handle("endOthers", () =>
        audited(
          action,
          (user) => sessions.endOthers(user, user.userId),
          (_, user) => user.userId
        ).pipe(Effect.bindTo("ended"))
      )
      .handle("end", ({ path: { id } }) =>
        auditedRemoval(action, id, (user) => sessions.end(user, user.userId, id))
      )
  })
)

/** Sessions of members, for owners. */
const group = (handlers: GroupHandlers<"memberSessions">) =>
  Effect.gen(function* () {
    const sessions = yield* OpenSessions
    return handlers
      .handle("list", ({ path: { id } }) =>
        Effect.flatMap(CurrentUser, (user) => sessions.list(user, id)).pipe(Effect.bindTo("sessions"))
      )
      .handle("endAll", ({ path: { id } }) =>
        audited(action, (user) => sessions.endOthers(user, id), id).pipe(Effect.bindTo("ended"))
      )
      .handle("endOne", ({ path: { id, session } }) =>
        Effect.as(
          audited(action, (user) => sessions.end(user, id, session), session),
          { id: session, deleted: true } as const
        )
      )
  })

export const MemberSessionsHandlers = HttpApiBuilder.group(Api, "memberSessions", group)
export const ManagedMemberSessionsHandlers = HttpApiBuilder.group(Api, "managedMemberSessions", group)
