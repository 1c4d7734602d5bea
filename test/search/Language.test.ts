import { expect, it } from "@effect/vitest"
import { isEnglish } from "../../src/search/Language.ts"

it("The function words of a text tell its language", () => {
  expect(isEnglish("You can return the product within fourteen days.")).toBe(true)
  expect(isEnglish("Sie können das Rad auch in der Filiale abgeben.")).toBe(false)
  expect(isEnglish("При проколе шины позвоните.")).toBe(false)
  expect(isEnglish("SPOKE_PORT 3000")).toBeUndefined()
})

it("Letters that English lacks tell of another language where no word of a short text is English", () => {
  expect(isEnglish("Odwołanie rezerwacji. Później zatrzymujemy połowę ceny.")).toBe(false)
  expect(isEnglish("Öffnungszeiten: täglich.")).toBe(false)
  expect(isEnglish("The offices in Zürich, Malmö, Córdoba and São Paulo")).not.toBe(false)
  expect(isEnglish("Office: Zürich")).toBeUndefined()
})
