import { QueryClient } from "@tanstack/react-query"
import { afterEach, expect, it, onTestFinished, vi } from "vitest"
import { changeUser, followOtherTabs, onUserChange, session } from "../../src/ui/dashboard/api/Session.ts"

const answer = (status: number, body: object) =>
  vi.stubGlobal("fetch", () => Promise.resolve(Response.json(body, { status })))
const signedIn = (id: string) => answer(200, { data: { user: { id } } })
const signedOut = () => answer(401, { error: { code: "UNAUTHORIZED", message: "Sign in." } })

afterEach(() => vi.unstubAllGlobals())

it("What one user has read is not shown to the next, who signed in from another window", async () => {
  const left: Array<string | null> = []
  onUserChange((userId) => left.push(userId))
  const queries = new QueryClient({ defaultOptions: { queries: { staleTime: 0 } } })
  const look = () => queries.fetchQuery({ ...session, staleTime: 0 })
  const ofTheUser = ["agents"]

  signedIn("ada")
  await look()
  queries.setQueryData(ofTheUser, "Ada's")
  await look()
  expect(queries.getQueryData(ofTheUser)).toBe("Ada's")

  signedIn("eve")
  await look()
  expect([queries.getQueryData(ofTheUser), left.at(-1)]).toEqual([undefined, "eve"])

  // The session ends in between.
  queries.setQueryData(ofTheUser, "Eve's")
  signedOut()
  expect(await look()).toBe(null)
  signedIn("ada")
  await look()
  expect([queries.getQueryData(ofTheUser), left.at(-1)]).toEqual([undefined, "ada"])
})

it("A tab learns at once that somebody signed out, or in as another user, in another tab", async () => {
  const left: Array<string | null> = []
  onUserChange((userId) => left.push(userId))
  const queries = new QueryClient()
  followOtherTabs(queries)
  const other = new BroadcastChannel("spoke.session")
  const told: Array<unknown> = []
  other.addEventListener("message", (event) => told.push("data" in event ? event.data : event))
  const user = () => queries.getQueryData<{ readonly id: string } | null>(session.queryKey)?.id ?? null
  onTestFinished(() => other.close())

  signedIn("ada")
  await queries.fetchQuery(session)
  queries.setQueryData(["agents"], "Ada's")
  other.postMessage("ada")
  other.postMessage("eve")
  signedIn("eve")
  await vi.waitFor(() => expect(left.at(-1)).toBe("eve"))
  expect([user(), queries.getQueryData(["agents"])]).toEqual([null, undefined])
  await queries.fetchQuery(session)
  expect(user()).toBe("eve")

  queries.setQueryData(["agents"], "Eve's")
  other.postMessage(null)
  await vi.waitFor(() => expect(left.at(-1)).toBe(null))
  expect([queries.getQueryData(session.queryKey), queries.getQueryData(["agents"])]).toEqual([
    null,
    undefined
  ])
  // What this tab has heard of, it does not tell.
  expect(told).toEqual([])
  changeUser(queries, null)
  await vi.waitFor(() => expect(told).toEqual([null]))
})
