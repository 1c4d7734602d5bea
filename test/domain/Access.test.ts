import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as SchemaAST from "effect/SchemaAST"
import { allows, atLeast, Permission, type Requirement, Role } from "../../src/domain/accounts/Access.ts"

const groups: ReadonlyArray<ReadonlyArray<Requirement>> = [
  ["chat", "chat:write"],
  ["retrieve", "sources:read", "retrieval:read"],
  ["ingest", "ingest.read", "ingest.write", "sources:write"],
  ["skill_fetch", "skills:read"],
  ["usage.read", "usage:read"],
  ["trace_read"],
  ["visitor_tokens"]
]
const legacy = groups.slice(0, 3).flat()
const requirements = groups.flat()
const permissions: ReadonlyArray<Permission> = [...requirements, "*"]
const roles: ReadonlyArray<Role> = Role.literals

const held = FastCheck.subarray([...permissions])
const required = FastCheck.constantFrom(...requirements)

const isUsage = (requirement: Requirement) => requirement === "usage.read" || requirement === "usage:read"

describe("Permissions of an API key", () => {
  it("know every documented permission", () => {
    const known = SchemaAST.isUnion(Permission.ast) ? Permission.ast.types : []
    expect(known.map(String).sort()).toEqual(permissions.map((permission) => `"${permission}"`).sort())
  })

  it("are what the documented rules say, for every pair of one held and one required", () => {
    for (const has of permissions) {
      for (const requirement of requirements) {
        const alias = groups.some((group) => group.some((one) => one === has) && group.includes(requirement))
        const grant = isUsage(requirement) && legacy.some((one) => one === has)
        expect([has, requirement, allows([has], requirement)]).toEqual([
          has,
          requirement,
          has === "*" || alias || grant
        ])
      }
    }
  })

  it.prop("grant nothing when none is held", [required], ([requirement]) => !allows([], requirement))

  it.prop("satisfy themselves", [held, required], ([all, requirement]) =>
    allows([...all, requirement], requirement)
  )

  it.prop(
    "grant what one of them grants alone, and nothing beyond",
    [held, required],
    ([all, requirement]) => allows(all, requirement) === all.some((one) => allows([one], requirement))
  )

  it.prop("never lose by holding more", [held, held, required], ([some, more, requirement]) => {
    if (allows(some, requirement)) expect(allows([...some, ...more], requirement)).toBe(true)
  })

  it.prop("satisfy everything with a literal *", [held, required], ([all, requirement]) =>
    allows([...all, "*"], requirement)
  )

  it.prop(
    "are bidirectional within an alias group",
    [required, required],
    ([one, other]) => isUsage(one) || isUsage(other) || allows([one], other) === allows([other], one)
  )

  it.prop(
    "never grant chat for usage.read",
    [FastCheck.constantFrom("chat" as const, "chat:write" as const)],
    ([chat]) => !allows(["usage.read", "usage:read"], chat)
  )

  it.prop(
    "leave the trace to trace_read and *",
    [held],
    ([all]) => allows(all, "trace_read") === (all.includes("trace_read") || all.includes("*"))
  )
})

describe("Roles", () => {
  const order: ReadonlyArray<Role> = ["viewer", "agent", "admin", "owner"]

  it("rank owner above admin above agent above viewer", () => {
    expect(new Set(roles)).toEqual(new Set(order))
    for (const [place, role] of order.entries()) {
      for (const [least, required] of order.entries()) expect(atLeast(role, required)).toBe(place >= least)
    }
  })
})
