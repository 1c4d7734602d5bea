import { QueryClient } from "@tanstack/react-query"
import { afterEach, expect, it, vi } from "vitest"
import { session, whenUserLeaves } from "../../src/ui/dashboard/api/Session.ts"

const answer = (status: number, body: object) =>
  vi.stubGlobal("fetch", () => Promise.resolve(Response.json(body, { status })))
const signedIn = (id: string) => answer(200, { data: { user: { id } } })
const signedOut = () => answer(401, { error: { code: "UNAUTHORIZED", message: "Sign in." } })

afterEach(() => vi.unstubAllGlobals())

it("What one user has read is not shown to the next, who signed in from another window", async () => {
  const left: Array<string | null> = []
  whenUserLeaves((userId) => left.push(userId))
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
