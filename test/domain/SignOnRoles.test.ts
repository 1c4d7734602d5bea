import { describe, expect, it } from "vitest"
import type { Role } from "../../src/domain/accounts/Access.ts"
import { provisionedRoleOf, signedInRoleOf } from "../../src/domain/accounts/SingleSignOn.ts"

const connection = (defaultRole: Role | null) => ({
  defaultRole,
  groupRoles: [
    { group: "Contractors", role: "viewer" },
    { group: "Support", role: "agent" },
    { group: "Heads", role: "owner" }
  ] as const
})

describe("The role of a person who signs in", () => {
  const roleOf = (
    defaultRole: Role | null,
    signed: ReadonlyArray<string>,
    provisioned: ReadonlyArray<string> = []
  ) => signedInRoleOf(connection(defaultRole), { signed, provisioned })

  it("is that of a group also where the default role is higher", () => {
    expect(roleOf("admin", ["Contractors"])).toBe("viewer")
    expect(roleOf("owner", [], ["Contractors"])).toBe("viewer")
    expect(roleOf("agent", ["Contractors"], ["Contractors"])).toBe("viewer")
  })

  it("is the highest of all groups, whoever told of them", () => {
    expect(roleOf(null, ["Contractors"], ["Support"])).toBe("agent")
    expect(roleOf(null, ["Contractors", "Support"])).toBe("agent")
  })

  it("is the default role without a group that has one, else none", () => {
    expect(roleOf("agent", ["Others"], ["Others"])).toBe("agent")
    expect(roleOf(null, ["Others"])).toBe(null)
  })

  it("is owner by a signed group alone", () => {
    expect(roleOf("viewer", ["Heads"])).toBe("owner")
    expect(roleOf("viewer", [], ["Heads"])).toBe("admin")
    expect(provisionedRoleOf(connection("owner"), [])).toBe("admin")
  })
})
