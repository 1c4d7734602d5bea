/** Everybody can read the arguments of a process: its secrets are masked there. */
import { expect, it } from "vitest"
import { maskArguments } from "../../src/app/cli/MaskArguments.ts"

it("the value of a secret option is masked, however it is written", () => {
  const start = ["node", "spoke", "chat", "Hi"]
  expect(maskArguments([...start, "--key", "spk_1"])).toEqual([...start, "--key", "***"])
  expect(maskArguments([...start, "--key=spk_1", "--json"])).toEqual([...start, "--key=***", "--json"])
  expect(maskArguments(["node", "spoke", "pull", "--token", "spt_1"])).toEqual([
    "node",
    "spoke",
    "pull",
    "--token",
    "***"
  ])
  expect(maskArguments(["node", "spoke", "import", "--operator-token", "t", "f"])).toEqual([
    "node",
    "spoke",
    "import",
    "--operator-token",
    "***",
    "f"
  ])
})

it("the token of a tenant's destination is one, too", () => {
  const start = ["node", "spoke", "tenant", "move", "ten_1", "--to", "https://eu.example.com"]
  expect(maskArguments([...start, "--to-token", "t"])).toEqual([...start, "--to-token", "***"])
})

it("a line without one stays as it is", () => {
  expect(maskArguments(["node", "spoke", "serve", "--role", "api"])).toBeNull()
  expect(maskArguments(["node", "spoke", "chat", "--key-file", "key"])).toBeNull()
})
