/** Parses a number with a decimal point or comma. Some phone keyboards have only one of them. */
export const parseNumber = (typed: string): number => Number(typed.replace(",", "."))
