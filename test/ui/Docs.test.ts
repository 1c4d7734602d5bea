import { describe, expect, it } from "vitest"
import { boundsOf, type Endpoint } from "../../src/ui/docs/Description.ts"
import { findSections, type Section } from "../../src/ui/docs/findSections.ts"
import { curlOf, requestOf } from "../../src/ui/docs/Request.ts"

const section = (heading: string, text: string, page = "Guide"): Section => ({
  href: `/docs/guide/x#${heading}`,
  page,
  heading,
  text
})

describe("The search of the documentation", () => {
  const sections = [
    section("Rotate a secret", "For 24 hours both secrets sign."),
    section("Verify", "A webhook has a signature, made with the secret of the webhook.", "Events"),
    section("Sources", "A source is read.")
  ]
  const headings = (question: string) => findSections(sections, question).map(({ heading }) => heading)

  it("finds sections with words that begin with each word of the query, matches in headings first", () => {
    expect(headings("secret")).toEqual(["Rotate a secret", "Verify"])
    expect(headings("webhook secr")).toEqual(["Verify"])
    expect(headings("events secret")).toEqual(["Verify"])
    expect(headings("secret elephant")).toEqual([])
  })

  it("ignores stop words, unless the query has no other words", () => {
    expect(headings("how do I rotate the secret?")).toEqual(["Rotate a secret"])
    expect(headings("is")).toEqual(["Sources"])
    expect(headings("")).toEqual([])
    expect(headings("?!")).toEqual([])
  })
})

describe("A request of the reference", () => {
  const operation: Endpoint = {
    operationId: "things.patch",
    method: "PATCH",
    path: "/v1/things/{thingId}",
    parameters: [
      { name: "thingId", in: "path", required: true },
      { name: "limit", in: "query" },
      { name: "if-match", in: "header" }
    ],
    requestBody: { content: { "application/json": {} } },
    responses: {}
  }

  it("has its parameters in the path, the query and the headers, escaped and without empty ones", () => {
    const values = { thingId: "a/b c", limit: "10&x=1", "if-match": "" }
    expect(requestOf(operation, "https://spoke.example", "key", values, "{}")).toEqual({
      url: "https://spoke.example/v1/things/a%2Fb%20c?limit=10%26x%3D1",
      method: "PATCH",
      headers: { "x-api-key": "key", "content-type": "application/json" },
      body: "{}"
    })
  })

  it("is shown as a curl command with quoted values and without the key", () => {
    const request = requestOf(operation, "https://spoke.example", "secret-key", {}, `{"a": "it's"}`)
    const line = curlOf(request)
    expect(line).toContain("-X PATCH 'https://spoke.example/v1/things/{thingId}'")
    expect(line).toContain(`-d '{"a": "it'\\''s"}'`)
    expect(line).toContain('"x-api-key: $SPOKE_API_KEY"')
    expect(line).not.toContain("secret-key")
  })
})

describe("The bounds of a value in the API reference", () => {
  it("are one range with separated thousands, and one character is not several", () => {
    expect(boundsOf({ minLength: 1, maxLength: 32_000 })).toBe("1 to 32,000 characters")
    expect(boundsOf({ minLength: 1 })).toBe("at least 1 character")
    expect(boundsOf({ minLength: 0, maxLength: 200 })).toBe("at most 200 characters")
    expect(boundsOf({ minimum: 0, maximum: 1 })).toBe("0 to 1")
    expect(boundsOf({ minimum: 5 })).toBe("at least 5")
    expect(boundsOf({ minLength: 8, maxLength: 8 })).toBe("8 characters")
    expect(boundsOf({})).toBe("")
  })
})
