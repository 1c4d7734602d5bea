/**
 * Open sessions. People list and end their own, owners those of members. An ended session is refused at once; its
 * sockets close within seconds.
 */
import * as Effect from "effect/Effect"
import type { SessionUser } from "../../domain/accounts/Access.ts"
import type { SignInId } from "../../domain/accounts/Session.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { noSuch, orNoSuch } from "../../domain/Errors.ts"
import type { UserId } from "../../domain/Ids.ts"
import { SessionStore } from "../../store/accounts/Sessions.ts"
import { TeamStore } from "../../store/accounts/Team.ts"

/** The fingerprint of the caller's session; null for an access token. */
const ownFingerprint = ({ session }: SessionUser) =>
  session === null ? null : Buffer.from(session, "base64url")

export class OpenSessions extends Effect.Service<OpenSessions>()("usecases/accounts/OpenSessions", {
  effect: Effect.gen(function* () {
    const store = yield* SessionStore
    const team = yield* TeamStore

    const requireMember = Effect.fn("OpenSessions.requireMember")(function* (
      scope: TenantScope,
      userId: UserId
    ) {
      yield* team.find(scope, userId).pipe(orNoSuch("user"))
    })

    /** Sessions of a member, last used first, at most a hundred. */
    const list = Effect.fn("OpenSessions.list")(function* (by: SessionUser, userId: UserId) {
      yield* requireMember(by, userId)
      return yield* store.list(by, userId, ownFingerprint(by))
    })

    const end = Effect.fn("OpenSessions.end")(function* (by: SessionUser, userId: UserId, id: SignInId) {
      if (!(yield* store.end(by, userId, id))) return yield* noSuch("session")
    })

    /** Ends all sessions of a member except the caller's. Returns their number. */
    const endOthers = Effect.fn("OpenSessions.endOthers")(function* (by: SessionUser, userId: UserId) {
      yield* requireMember(by, userId)
      return yield* store.endOthers(by, userId, ownFingerprint(by))
    })

    return { list, end, endOthers } as const
  })
}) {}
