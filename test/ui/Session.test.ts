import { QueryClient } from "@tanstack/react-query"
import { afterEach, expect, it, onTestFinished, vi } from "vitest"
import { changeUser, followOtherTabs, onUserChange, session } from "../../src/ui/dashboard/api/Session.ts"

const answer = (status: number, body: object) =>
  vi.stubGlobal("fetch", () => Promise.resolve(Response.json(body, { status })))
const signedIn = (id: string) => answer(200, { data: { user: { id } } })
const signedOut = () => answer(401, { error: { code: "UNAUTHORIZED", message: "Sign in." } })

afterEach(() => vi.unstubAllGlobals())

it("The data of one user is not shown to the next one, who signed in from another window", async () => {
  const users: Array<string | null> = []
  onUserChange((userId) => users.push(userId))
  const queries = new QueryClient({ defaultOptions: { queries: { staleTime: 0 } } })
  const fetchSession = () => queries.fetchQuery({ ...session, staleTime: 0 })
  const queryKey = ["agents"]

  signedIn("ada")
  await fetchSession()
  queries.setQueryData(queryKey, "Ada's")
  await fetchSession()
  expect(queries.getQueryData(queryKey)).toBe("Ada's")

  signedIn("eve")
  await fetchSession()
  expect([queries.getQueryData(queryKey), users.at(-1)]).toEqual([undefined, "eve"])

  // The session ends in between.
  queries.setQueryData(queryKey, "Eve's")
  signedOut()
  expect(await fetchSession()).toBe(null)
  signedIn("ada")
  await fetchSession()
  expect([queries.getQueryData(queryKey), users.at(-1)]).toEqual([undefined, "ada"])
})

it("A tab follows a sign-out or a sign-in as another user in another tab at once", async () => {
  const users: Array<string | null> = []
  onUserChange((userId) => users.push(userId))
  const queries = new QueryClient()
  followOtherTabs(queries)
  const otherTab = new BroadcastChannel("spoke.session")
  const sent: Array<unknown> = []
  otherTab.addEventListener("message", (event) => sent.push("data" in event ? event.data : event))
  const cachedUserId = () =>
    queries.getQueryData<{ readonly id: string } | null>(session.queryKey)?.id ?? null
  onTestFinished(() => otherTab.close())

  signedIn("ada")
  await queries.fetchQuery(session)
  queries.setQueryData(["agents"], "Ada's")
  otherTab.postMessage("ada")
  otherTab.postMessage("eve")
  signedIn("eve")
  await vi.waitFor(() => expect(users.at(-1)).toBe("eve"))
  expect([cachedUserId(), queries.getQueryData(["agents"])]).toEqual([null, undefined])
  await queries.fetchQuery(session)
  expect(cachedUserId()).toBe("eve")

  queries.setQueryData(["agents"], "Eve's")
  otherTab.postMessage(null)
  await vi.waitFor(() => expect(users.at(-1)).toBe(null))
  expect([queries.getQueryData(session.queryKey), queries.getQueryData(["agents"])]).toEqual([
    null,
    undefined
  ])
  // A change that came from another tab is not sent again.
  expect(sent).toEqual([])
  changeUser(queries, null)
  await vi.waitFor(() => expect(sent).toEqual([null]))
})
