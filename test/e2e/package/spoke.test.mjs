/** For Jest and Vitest alike, with their globals: each runs tests among globals of its own. */
import * as spoke from "spoke"
import { trial } from "./trial.mjs"

test("the library works", async () => {
  expect(await trial(spoke)).toBe("all is well")
}, 120_000)
