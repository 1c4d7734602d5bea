import { everywhere } from "../text/everywhere.ts"
import { useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import { Problem } from "./Problem.tsx"

interface Props {
  readonly query: {
    readonly hasNextPage: boolean
    readonly isFetchingNextPage: boolean
    readonly isFetchNextPageError: boolean
    readonly error: unknown
    readonly fetchNextPage: () => unknown
  }
}

/** Loads the next page of a list. Nothing at its end. */
export const LoadMore = ({ query }: Props) => {
  const t = useText(everywhere)
  if (!query.hasNextPage) return null
  return (
    <div>
      {query.isFetchNextPageError ? <Problem problem={query.error} /> : null}
      <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
        {t.loadMore}
      </Button>
    </div>
  )
}
