/** The signed-in user. */
import { type QueryClient, queryOptions } from "@tanstack/react-query"
import type { Role as Declared } from "../../../domain/accounts/Access.ts"
import type { Login } from "../../../domain/accounts/Account.ts"
import type { SignedIn } from "../../../http/hosted/accounts/SessionsApi.ts"
import { ApiError, call } from "./Client.ts"

export type Role = typeof Declared.Encoded
export type User = (typeof SignedIn.Encoded)["user"]

const rankOf: Record<Role, number> = { owner: 3, admin: 2, agent: 1, viewer: 0 }

/** True if `role` is `minRole` or higher. The service enforces roles. This only hides what it would refuse. */
export const atLeast = (role: Role, minRole: Role): boolean => rankOf[role] >= rankOf[minRole]

const sessionKey = ["session"] as const

/**
 * Tabs of this browser share the session. A tab sends the id of a new user to the others, and null after a sign-out.
 */
const tabs = new BroadcastChannel("spoke.session")

const userChangeListeners = new Set<(userId: string | null) => void>()

/** Calls `listener` with the id of each new user, and with null after a sign-out. For work in the background. */
export const onUserChange = (listener: (userId: string | null) => void): void => {
  userChangeListeners.add(listener)
}

/** Removes the data of the previous user, and notifies the listeners. */
const forgetPreviousUser = (queries: QueryClient, userId: string | null): void => {
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionKey[0] })
  for (const listener of userChangeListeners) listener(userId)
}

/** Null without a session. */
export const session = queryOptions({
  queryKey: sessionKey,
  queryFn: ({ client, signal }) =>
    call<typeof SignedIn.Encoded>("GET", "/api/auth/session", { signal }).then(
      ({ user }) => {
        // Another user may have signed in from another tab, also after this session ended.
        const previous = client.getQueryData<User | null>(sessionKey)
        if (previous?.id !== user.id) forgetPreviousUser(client, user.id)
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

/** Signing out of a session that has already ended succeeds. */
export const signOut = () =>
  call("POST", "/api/auth/logout").catch((problem: unknown) => {
    if (!(problem instanceof ApiError && problem.status === 401)) throw problem
  })

/** Changes the user in all tabs. Removes the data of the previous user. */
export const changeUser = (queries: QueryClient, user: User | null): void => {
  const userId = user?.id ?? null
  queries.setQueryData(session.queryKey, user)
  forgetPreviousUser(queries, userId)
  tabs.postMessage(userId)
}

/** Follows changes of the user in other tabs. */
export const followOtherTabs = (queries: QueryClient): void => {
  tabs.onmessage = ({ data: userId }: MessageEvent<string | null>) => {
    const previous = queries.getQueryData(session.queryKey)
    if ((previous?.id ?? null) === userId) return
    if (userId === null) queries.setQueryData(session.queryKey, null)
    else void queries.resetQueries({ queryKey: sessionKey })
    forgetPreviousUser(queries, userId)
  }
}
