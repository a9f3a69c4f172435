/** SQL files are imported as text (rule in wrangler.toml). */
declare module '*.sql' {
  const text: string;
  export default text;
}
