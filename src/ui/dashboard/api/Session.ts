/** The signed-in user. */
import { type QueryClient, queryOptions } from "@tanstack/react-query"
import type { Role as Declared } from "../../../domain/accounts/Access.ts"
import type { Login } from "../../../domain/accounts/Account.ts"
import type { SignedIn } from "../../../http/hosted/accounts/SessionsApi.ts"
import { ApiError, call } from "./Client.ts"

export type Role = typeof Declared.Encoded
export type User = (typeof SignedIn.Encoded)["user"]

const rank: Record<Role, number> = { owner: 3, admin: 2, agent: 1, viewer: 0 }

/** True if `role` is `least` or higher. The service enforces roles; this only hides what it would refuse. */
export const atLeast = (role: Role, least: Role): boolean => rank[role] >= rank[least]

const sessionKey = ["session"] as const

/** Tabs of this browser share its session. They tell each other the id of a new user, and null when somebody signs out. */
const tabs = new BroadcastChannel("spoke.session")

const leaveListeners = new Set<(userId: string | null) => void>()

/** Calls `onLeave` with the id of each new user, and with null when somebody signs out: for what goes on by itself. */
export const whenUserLeaves = (onLeave: (userId: string | null) => void): void => {
  leaveListeners.add(onLeave)
}

/** Removes what was read for the user before, and ends what goes on for them. */
const forgetBefore = (queries: QueryClient, userId: string | null): void => {
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionKey[0] })
  for (const onLeave of leaveListeners) onLeave(userId)
}

/** Null without a session. */
export const session = queryOptions({
  queryKey: sessionKey,
  queryFn: ({ client, signal }) =>
    call<typeof SignedIn.Encoded>("GET", "/api/auth/session", { signal }).then(
      ({ user }) => {
        // Somebody else may have signed in from another tab, also after this session has ended.
        const before = client.getQueryData<User | null>(sessionKey)
        if (before?.id !== user.id) forgetBefore(client, user.id)
        return user
      },
      (problem: unknown) => {
        if (problem instanceof ApiError && problem.status === 401) return null
        throw problem
      }
    ),
  staleTime: 60_000
})

export const signIn = (email: string, password: string) =>
  call<typeof SignedIn.Encoded, typeof Login.Encoded>("POST", "/api/auth/login", {
    body: { email, password }
  })

/** A session that has already ended is no failure. */
export const signOut = () =>
  call("POST", "/api/auth/logout").catch((problem: unknown) => {
    if (!(problem instanceof ApiError && problem.status === 401)) throw problem
  })

/** Changes the user, in every tab. What was read for the one before is removed, and what goes on for them ends. */
export const changeUser = (queries: QueryClient, user: User | null): void => {
  const userId = user?.id ?? null
  queries.setQueryData(session.queryKey, user)
  forgetBefore(queries, userId)
  tabs.postMessage(userId)
}

/** Shows the sign-in, or what the new user may see, as soon as another tab has changed the user. */
export const followOtherTabs = (queries: QueryClient): void => {
  tabs.onmessage = ({ data: userId }: MessageEvent<string | null>) => {
    const before = queries.getQueryData(session.queryKey)
    if ((before?.id ?? null) === userId) return
    if (userId === null) queries.setQueryData(session.queryKey, null)
    else void queries.resetQueries({ queryKey: sessionKey })
    forgetBefore(queries, userId)
  }
}
