/** The sources that a key, a widget or a channel may read. */
import { useInfiniteQuery } from "@tanstack/react-query"
import type { Key } from "../../api/Keys.ts"
import { sources } from "../../api/Sources.ts"
import { CheckboxGroup, Switch } from "../../components/Checkboxes.tsx"
import { LoadMore } from "../../components/LoadMore.tsx"
import { texts, useText } from "../../text/Language.tsx"
import { LabelsField, parseLabels, formatLabels } from "../sources/LabelsField.tsx"

const words = texts(
  {
    title: "Sources",
    limited: "Only some sources",
    labelsHelp:
      "Separated by commas. The key reads sources with at least one of them, and those without labels. Not for a key that may change sources.",
    these: "Of those, only these (none chosen: all)"
  },
  {
    title: "Quellen",
    limited: "Nur manche Quellen",
    labelsHelp:
      "Durch Kommas getrennt. Der Schlüssel liest Quellen mit mindestens einem davon und solche ohne Etikett. Nicht für Schlüssel, die Quellen ändern dürfen.",
    these: "Davon nur diese (keine gewählt: alle)"
  }
)

/** The values of the fields, as typed. */
export interface ScopeFieldValues {
  readonly limited: boolean
  readonly labels: string
  readonly sourceIds: ReadonlyArray<string>
}

export const noScope: ScopeFieldValues = { limited: false, labels: "", sourceIds: [] }

/** The fields of a stored scope. */
export const scopeFieldsOf = (scope: Key["sourceScope"]): ScopeFieldValues =>
  scope === null
    ? noScope
    : { limited: true, labels: formatLabels(scope.labels ?? []), sourceIds: scope.sourceIds ?? [] }

/** The scope as it is sent. Nothing is sent for every source. */
export const scopeOf = ({ labels, limited, sourceIds }: ScopeFieldValues) =>
  limited
    ? { sourceScope: { labels: parseLabels(labels), ...(sourceIds.length === 0 ? {} : { sourceIds }) } }
    : {}

/** The scope as it is sent, null for every source. */
export const scopeOrNull = (value: ScopeFieldValues) => ({ sourceScope: null, ...scopeOf(value) })

/** Paths of validation issues of a scope. */
export const scopePaths = ["sourceScope.labels", "sourceScope.sourceIds"] as const

export const scopeText = ({ labels = [], sourceIds = [] }: NonNullable<Key["sourceScope"]>): string =>
  formatLabels([...(labels.length === 0 ? ["–"] : labels), ...sourceIds])

export const useScopeTitle = () => useText(words).title

interface Props {
  readonly agentId: string
  readonly value: ScopeFieldValues
  /** Help text of the labels; without one, that of a key. */
  readonly help?: string
  readonly onChange: (value: Partial<ScopeFieldValues>) => void
  readonly errorOf: (path: (typeof scopePaths)[number]) => string | undefined
}

export const ScopeFields = ({ agentId, errorOf, help, onChange, value }: Props) => {
  const t = useText(words)
  const query = useInfiniteQuery(sources(agentId))
  const loadedSources = query.data?.pages.flatMap((page) => page.sources) ?? []
  return (
    <>
      <Switch label={t.limited} isSelected={value.limited} onChange={(limited) => onChange({ limited })} />
      {value.limited ? (
        <>
          <LabelsField
            help={help ?? t.labelsHelp}
            value={value.labels}
            onChange={(labels) => onChange({ labels })}
            error={errorOf("sourceScope.labels")}
          />
          {loadedSources.length === 0 ? null : (
            <CheckboxGroup
              isNamedByPeople
              label={t.these}
              options={loadedSources.map(
                ({ id, labels = [], name }) => [id, name, formatLabels(labels)] as const
              )}
              value={value.sourceIds}
              onChange={(sourceIds) => onChange({ sourceIds })}
              error={errorOf("sourceScope.sourceIds")}
            />
          )}
          <LoadMore query={query} />
        </>
      ) : null}
    </>
  )
}
