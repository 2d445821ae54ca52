import sdk from '../eslint.config.js';

export default [
  ...sdk,
  {
    files: ['**/*.ts'],
    languageOptions: {
      parserOptions: { project: ['tsconfig.json', 'tsconfig.tests.json'], tsconfigRootDir: import.meta.dirname },
    },
  },
];
