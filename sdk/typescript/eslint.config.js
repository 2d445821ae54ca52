import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist/', 'build/', 'node_modules/', 'src/v1/', 'world/'] },
  ...tseslint.configs.strictTypeChecked,
  {
    files: ['**/*.ts'],
    languageOptions: { parserOptions: { project: ['tsconfig.json', 'tsconfig.programs.json'] } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/consistent-type-imports': [
        'error',
        { fixStyle: 'inline-type-imports', disallowTypeAnnotations: false },
      ],
      // Calls of functions without a result are returned where that makes one line of two.
      '@typescript-eslint/no-confusing-void-expression': 'off',
      // Workflow code throws whatever the author throws, and the SDK passes it on.
      '@typescript-eslint/only-throw-error': 'off',
      '@typescript-eslint/prefer-promise-reject-errors': 'off',
      // The messages of the wire may hold numbers that this version does not know.
      '@typescript-eslint/no-unnecessary-condition': 'off',
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
      '@typescript-eslint/no-invalid-void-type': 'off',
    },
  },
  // node:test takes care of its promises.
  { files: ['tests/**'], rules: { '@typescript-eslint/no-floating-promises': 'off' } },
  { files: ['**/*.{js,mjs}'], extends: [tseslint.configs.disableTypeChecked] },
);
